// SPDX-License-Identifier: Apache-2.0
#include "linalg/block_definite.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/parallel.h"
#include "base/rounding.h"
#include "linalg/blas.h"
#include "linalg/lapack.h"

namespace lipscope {
namespace {

using Block = std::vector<double>;
// For each block column the rows below the diagonal in which the factor may have entries.
using Pattern = std::vector<std::set<std::size_t>>;

Pattern factor_pattern(const BlockSource& matrix) {
  const std::size_t n = matrix.sizes().size();
  Pattern rows(n);
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = j + 1; i < n; ++i) {
      if (matrix.couples(i, j)) rows[j].insert(i);
    }
    // Eliminating j joins the blocks it is coupled to; pairs are remembered in their first member.
    for (const std::size_t i : rows[j]) {
      for (const std::size_t other : rows[j]) {
        if (other > i) rows[i].insert(other);
      }
    }
  }
  return rows;
}

bool finite(const Block& entries) {
  double sum = 0;
  for (const double e : entries) sum += e * 0.0;
  return sum == 0;
}

// Only the lower triangle: the other one is scratch.
bool lower_finite(const Block& entries, Index n) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j <= i; ++j) sum += entries[static_cast<std::size_t>(i * n + j)] * 0.0;
  }
  return sum == 0;
}

int as_int(Index n) { return static_cast<int>(n); }

class Factorisation {
 public:
  explicit Factorisation(const BlockSource& matrix)
      : m_(matrix), sizes_(matrix.sizes()), pattern_(factor_pattern(matrix)) {}

  [[nodiscard]] bool succeeds(const std::function<bool()>& stop) {
    const bool thin = m_.first_is_diagonal();
    if (thin && !eliminate_first()) return false;
    for (std::size_t k = thin ? 1 : 0; k < sizes_.size(); ++k) {
      if ((stop && stop()) || !eliminate(k)) return false;
    }
    return true;
  }

 private:
  // Block (i, j) of what is left of the matrix, i >= j.
  Block& left(std::size_t i, std::size_t j) {
    const auto found = blocks_.find({i, j});
    if (found != blocks_.end()) return found->second;
    Block& made = blocks_[{i, j}];
    made.assign(static_cast<std::size_t>(sizes_[i] * sizes_[j]), 0);
    if (i == j) {
      const std::vector<double> diagonal = m_.diagonal(i);
      m_.add_to_diagonal_block(i, made.data());
      for (Index e = 0; e < sizes_[i]; ++e)
        made[static_cast<std::size_t>(e * (sizes_[i] + 1))] = diagonal[static_cast<std::size_t>(e)];
    } else if (m_.couples(i, j)) {
      const RowMatrix rows = m_.below(i, j);
      for (Index r = 0; r < rows.rows; ++r) {
        rows.for_row(r, [&](Index c, std::size_t at) {
          made[static_cast<std::size_t>(r * sizes_[j] + c)] = rows.weights[at];
        });
      }
    }
    return made;
  }

  // For a diagonal block: the rows of its neighbours stay as sparse as they are.
  bool eliminate_first() {
    std::vector<double> root = m_.diagonal(0);
    for (double& e : root) {
      e = std::sqrt(e);
      if (!(e > 0) || !std::isfinite(e)) return false;
    }
    std::map<std::size_t, RowMatrix> below;
    for (const std::size_t i : pattern_[0]) {
      RowMatrix rows = m_.below(i, 0);
      for (Index r = 0; r < rows.rows; ++r) {
        rows.for_row(r, [&](Index c, std::size_t at) {
          rows.weights[at] /= root[static_cast<std::size_t>(c)];
        });
      }
      if (!finite(rows.weights)) return false;
      below[i] = std::move(rows);
    }
    for (const auto& [i, a] : below) {
      for (const auto& [j, b] : below) {
        if (j <= i) subtract(left(i, j), a, b, i == j);
      }
    }
    return true;
  }

  // c -= a b', below the diagonal only where that is enough.
  static void subtract(Block& c, const RowMatrix& a, const RowMatrix& b, bool square) {
    if (a.dense() && b.dense()) {
      subtract(c.data(), a.weights.data(), a.rows, b.weights.data(), b.rows, a.cols, square);
      return;
    }
    const RowMatrix columns = transposed(b);
    parallel_for(a.rows, 16, [&](Index from, Index to) {
      for (Index r = from; r < to; ++r) {
        double* row = c.data() + r * b.rows;
        a.for_row(r, [&](Index k, std::size_t at) {
          const double w = a.weights[at];
          columns.for_row(k, [&](Index s, std::size_t place) {
            if (!square || s <= r) row[s] -= w * columns.weights[place];
          });
        });
      }
    });
  }
  static void subtract(double* c, const double* a, Index rows, const double* b, Index cols, Index n,
                       bool square) {
    if (square) {
      cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, as_int(rows), as_int(n), -1.0, a,
                  as_int(n), 1.0, c, as_int(rows));
    } else {
      cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, as_int(rows), as_int(cols), as_int(n),
                  -1.0, a, as_int(n), b, as_int(n), 1.0, c, as_int(cols));
    }
  }

  bool eliminate(std::size_t k) {
    const Index n = sizes_[k];
    Block& d = left(k, k);
    const int size = as_int(n);
    int info = 0;
    if (!lower_finite(d, n)) return false;
    dpotrf_("U", &size, d.data(), &size, &info, 1);  // row-major lower is column-major upper
    if (info != 0 || !lower_finite(d, n)) return false;
    for (Index i = 0; i < n; ++i) {
      if (!(d[static_cast<std::size_t>(i * (n + 1))] > 0)) return false;
    }
    for (const std::size_t i : pattern_[k]) {
      Block& b = left(i, k);
      if (!finite(b)) return false;
      cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit,
                  as_int(sizes_[i]), size, 1.0, d.data(), size, b.data(), size);
      if (!finite(b)) return false;
    }
    for (const std::size_t i : pattern_[k]) {
      for (const std::size_t j : pattern_[k]) {
        if (j > i) continue;
        Block& target = left(i, j);
        subtract(target.data(), left(i, k).data(), sizes_[i], left(j, k).data(), sizes_[j], n,
                 i == j);
      }
    }
    for (const std::size_t i : pattern_[k]) blocks_.erase({i, k});
    blocks_.erase({k, k});
    return true;
  }

  const BlockSource& m_;
  const std::vector<Index>& sizes_;
  Pattern pattern_;
  std::map<std::pair<std::size_t, std::size_t>, Block> blocks_;
};

}  // namespace

double widest_row(const BlockSource& matrix) {
  const Pattern pattern = factor_pattern(matrix);
  std::vector<double> width(pattern.size());
  for (std::size_t j = 0; j < pattern.size(); ++j) {
    const auto size = static_cast<double>(matrix.sizes()[j]);
    width[j] += size;
    for (const std::size_t i : pattern[j]) width[i] += size;
  }
  return *std::ranges::max_element(width);
}

BlockCost block_cost(const BlockSource& matrix) {
  const Pattern pattern = factor_pattern(matrix);
  const auto size = [&](std::size_t k) { return static_cast<double>(matrix.sizes()[k]); };
  BlockCost cost;
  std::set<std::pair<std::size_t, std::size_t>> live;
  for (std::size_t k = matrix.first_is_diagonal() ? 1 : 0; k < pattern.size(); ++k) {
    live.insert({k, k});
    cost.operations += size(k) * size(k) * size(k) / 6;
    for (const std::size_t i : pattern[k]) {
      live.insert({i, k});
      cost.operations += size(i) * size(k) * size(k) / 2;
      for (const std::size_t j : pattern[k]) {
        if (j > i) continue;
        live.insert({i, j});
        cost.operations += size(i) * size(j) * size(k) * (i == j ? 0.5 : 1);
      }
    }
    double held = 0;
    for (const auto& [i, j] : live) held += size(i) * size(j);
    cost.doubles = std::max(cost.doubles, held);
    std::erase_if(live, [&](const auto& block) { return block.second == k; });
  }
  return cost;
}

double block_definite_deficit_up(const BlockSource& matrix, const std::function<bool()>& stop) {
  double trace = 0, order = 0;
  for (std::size_t k = 0; k < matrix.sizes().size(); ++k) {
    for (const double d : matrix.diagonal(k)) trace = add_up(trace, d);
    order += static_cast<double>(matrix.sizes()[k]);
  }
  if (!std::isfinite(trace) || !Factorisation(matrix).succeeds(stop)) return kInf;
  const double gamma = gamma_up(static_cast<std::size_t>(2 * widest_row(matrix) + 16));
  if (!(gamma < 0.5)) return kInf;
  const double underflow = mul_up(order, mul_up(add_up(order + 1, trace), 0x1p-1070));
  return add_up(mul_up(div_up(gamma, sub_down(1, gamma)), trace), underflow);
}

}  // namespace lipscope

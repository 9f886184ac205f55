// SPDX-License-Identifier: Apache-2.0
#include "linalg/norm/block_definite.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/parallel.h"
#include "base/rounding.h"
#include "linalg/norm/block_order.h"
#include "linalg/tensor/blas.h"
#include "linalg/tensor/cholesky.h"

namespace lipscope {
namespace {

using Block = std::vector<double>;

// What is worth a thread: rows of so many entries together.
Index rows_worth(Index entries) {
  return std::max<Index>(1, (Index{1} << 18) / std::max<Index>(1, entries));
}

// Blocks are known by their places in the order.
class Factorisation {
 public:
  explicit Factorisation(const BlockSource& matrix) : m_(matrix), order_(matrix) {
    for (std::size_t k = 0; k < order_.count(); ++k)
      sizes_.push_back(matrix.sizes()[order_.node(k)]);
  }

  [[nodiscard]] bool succeeds(const std::function<bool()>& stop) {
    return eliminated(sizes_.size(), stop);
  }

  [[nodiscard]] Block remainder(const std::function<bool()>& stop) {
    const std::size_t last = sizes_.size() - 1;
    LIPSCOPE_CHECK(order_.node(last) == last);
    return eliminated(last, stop) ? std::move(left(last, last)) : Block{};
  }

 private:
  [[nodiscard]] bool eliminated(std::size_t count, const std::function<bool()>& stop) {
    for (std::size_t k = 0; k < count; ++k) {
      if (stop && stop()) return false;
      if (!(order_.thin(k) ? eliminate_thin(k) : eliminate(k))) return false;
    }
    return true;
  }

  [[nodiscard]] bool coupled(std::size_t i, std::size_t j) const {
    const auto [low, high] = std::minmax({order_.node(i), order_.node(j)});
    return m_.couples(high, low);
  }
  [[nodiscard]] RowMatrix coupling(std::size_t i, std::size_t j) const {
    const std::size_t row = order_.node(i), column = order_.node(j);
    return row > column ? m_.below(row, column) : transposed(m_.below(column, row));
  }

  // Block (i, j) of what is left of the matrix, i >= j.
  Block& left(std::size_t i, std::size_t j) {
    const auto found = blocks_.find({i, j});
    if (found != blocks_.end()) return found->second;
    Block& made = blocks_[{i, j}];
    if (i != j && coupled(i, j)) {
      RowMatrix rows = coupling(i, j);
      if (rows.dense()) {
        made = std::move(rows.weights);
        return made;
      }
      made.assign(static_cast<std::size_t>(sizes_[i] * sizes_[j]), 0);
      for (Index r = 0; r < rows.rows; ++r) {
        rows.for_row(r, [&](Index c, std::size_t at) {
          made[static_cast<std::size_t>(r * sizes_[j] + c)] = rows.weights[at];
        });
      }
      return made;
    }
    made.assign(static_cast<std::size_t>(sizes_[i] * sizes_[j]), 0);
    if (i == j) {
      const std::vector<double> diagonal = m_.diagonal(order_.node(i));
      m_.add_to_diagonal_block(order_.node(i), made.data());
      for (Index e = 0; e < sizes_[i]; ++e)
        made[static_cast<std::size_t>(e * (sizes_[i] + 1))] = diagonal[static_cast<std::size_t>(e)];
    }
    return made;
  }

  // The rows of its neighbours stay as sparse as they are.
  bool eliminate_thin(std::size_t k) {
    std::vector<double> root = m_.diagonal(order_.node(k));
    for (double& e : root) {
      e = std::sqrt(e);
      if (!(e > 0) || !std::isfinite(e)) return false;
    }
    std::map<std::size_t, RowMatrix> below;
    for (const std::size_t i : order_.below(k)) {
      RowMatrix rows = coupling(i, k);
      parallel_for(rows.rows, rows_worth(rows.cols), [&](Index from, Index to) {
        for (Index r = from; r < to; ++r) {
          rows.for_row(r, [&](Index c, std::size_t at) {
            rows.weights[at] /= root[static_cast<std::size_t>(c)];
          });
        }
      });
      if (!all_finite(std::ssize(rows.weights), rows.weights.data())) return false;
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
    const double per_row = static_cast<double>(a.weights.size()) /
                           static_cast<double>(std::max<Index>(1, a.rows)) *
                           (static_cast<double>(columns.weights.size()) /
                            static_cast<double>(std::max<Index>(1, columns.rows)));
    parallel_for(a.rows, 16, [&](Index from, Index to) {
      for (Index r = from; r < to; ++r) {
        charge(per_row);
        double* row = c.data() + r * b.rows;
        a.for_row(r, [&](Index k, std::size_t at) {
          const double w = a.weights[at];
          if (columns.dense()) {
            columns.for_row(k, [&](Index s, std::size_t place) {
              if (!square || s <= r) row[s] -= w * columns.weights[place];
            });
            return;
          }
          const std::size_t end = columns.row_end(k);
          for (std::size_t place = columns.row_begin(k); place < end; ++place) {
            const Index s = columns.columns[place];
            if (square && s > r) break;  // they increase
            row[s] -= w * columns.weights[place];
          }
        });
      }
    });
  }
  static void subtract(double* c, const double* a, Index rows, const double* b, Index cols, Index n,
                       bool square) {
    if (square) {
      syrk(Triangle::kLower, rows, n, -1.0, {a, n}, 1.0, c, rows);
    } else {
      gemm(rows, cols, n, -1.0, {a, n}, {b, n, true}, 1.0, c, cols);
    }
  }

  bool eliminate(std::size_t k) {
    const Index n = sizes_[k];
    Block& d = left(k, k);
    if (!lower_finite(n, d.data()) || !cholesky(n, d.data(), n)) return false;
    if (!lower_finite(n, d.data())) return false;
    for (Index i = 0; i < n; ++i) {
      if (!(d[static_cast<std::size_t>(i * (n + 1))] > 0)) return false;
    }
    for (const std::size_t i : order_.below(k)) {
      Block& b = left(i, k);
      if (!all_finite(std::ssize(b), b.data())) return false;
      solve_lower(sizes_[i], n, d.data(), n, b.data(), n);
      if (!all_finite(std::ssize(b), b.data())) return false;
    }
    for (const std::size_t i : order_.below(k)) {
      for (const std::size_t j : order_.below(k)) {
        if (j > i) continue;
        Block& target = left(i, j);
        subtract(target.data(), left(i, k).data(), sizes_[i], left(j, k).data(), sizes_[j], n,
                 i == j);
      }
    }
    for (const std::size_t i : order_.below(k)) blocks_.erase({i, k});
    blocks_.erase({k, k});
    return true;
  }

  const BlockSource& m_;
  BlockOrder order_;
  std::vector<Index> sizes_;
  std::map<std::pair<std::size_t, std::size_t>, Block> blocks_;
};

}  // namespace

double widest_row(const BlockSource& matrix) {
  const BlockOrder order(matrix);
  std::vector<double> width(order.count());
  for (std::size_t j = 0; j < order.count(); ++j) {
    const auto size = static_cast<double>(matrix.sizes()[order.node(j)]);
    width[j] += size;
    for (const std::size_t i : order.below(j)) width[i] += size;
  }
  return *std::ranges::max_element(width);
}

std::vector<double> block_remainder(const BlockSource& matrix, const std::function<bool()>& stop) {
  return Factorisation(matrix).remainder(stop);
}

BlockCost block_cost(const BlockSource& matrix) { return BlockOrder(matrix).cost(); }

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

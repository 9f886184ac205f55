// SPDX-License-Identifier: Apache-2.0
#include "linalg/tensor/row_matrix.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/checkpoint.h"
#include "base/interval.h"
#include "base/parallel.h"
#include "linalg/tensor/blas.h"
#include "linalg/tensor/row_kernel.h"

namespace lipscope {
namespace {

// What is worth a thread: some tenths of a millisecond, for another process may hold the processor.
constexpr Index kOperations = Index{1} << 23;

// Weights and radii that entries are added to.
class Entries {
 public:
  Entries(RowMatrix& m, std::size_t count) : m_(m) { m_.weights.assign(count, 0); }

  void add(std::size_t at, double lo, double hi) {
    double& w = m_.weights[at];
    if (lo == hi && (w == 0 && m_.radius_at(at) == 0)) {
      w = lo;
      return;
    }
    const Interval old{sub_down(w, m_.radius_at(at)), add_up(w, m_.radius_at(at))};
    const Interval all =
        (w == 0 && m_.radius_at(at) == 0) ? Interval{lo, hi} : old + Interval{lo, hi};
    w = midpoint(all);
    const double radius = radius_up(all);
    if (radius == 0) return;
    if (m_.radius.empty()) m_.radius.assign(m_.weights.size(), 0);
    m_.radius[at] = radius;
  }

 private:
  RowMatrix& m_;
};

// Entries of each row, in count[row + 1]. True as soon as they are a quarter of all: better dense,
// for products by blocks are that much faster.
bool count_entries(Index rows, Index cols, const std::function<void(const VisitEntry&)>& list,
                   std::vector<std::size_t>& count) {
  struct Enough {};
  const double most = static_cast<double>(rows) * static_cast<double>(cols);
  double entries = 0;
  if (most == 0) return true;
  try {
    list([&](Index row, Index, double lo, double hi) {
      if (lo == 0 && hi == 0) return;
      ++count[static_cast<std::size_t>(row) + 1];
      entries += 1;
      if (4 * entries >= most) throw Enough{};
    });
  } catch (const Enough&) {
    return true;
  }
  return false;
}

// Rows whose entries came in any order: sorted, pieces of one entry added.
RowMatrix in_order(RowMatrix loose) {
  RowMatrix m;
  m.rows = loose.rows;
  m.cols = loose.cols;
  m.begin.push_back(0);
  std::vector<std::size_t> order;
  std::vector<Interval> entries;
  bool exact = true;
  for (Index i = 0; i < m.rows; ++i) {
    order.resize(loose.row_end(i) - loose.row_begin(i));
    std::iota(order.begin(), order.end(), loose.row_begin(i));
    const auto before = [&](std::size_t a, std::size_t b) {
      return loose.columns[a] < loose.columns[b];
    };
    if (!std::ranges::is_sorted(order, before)) std::ranges::stable_sort(order, before);
    for (const std::size_t at : order) {
      const double w = loose.weights[at], r = loose.radius_at(at);
      const Interval piece{sub_down(w, r), add_up(w, r)};
      if (m.columns.size() > m.begin.back() && m.columns.back() == loose.columns[at]) {
        const double old = m.weights.back(), around = m.radius.back();
        const Interval all = Interval{sub_down(old, around), add_up(old, around)} + piece;
        m.weights.back() = midpoint(all);
        m.radius.back() = radius_up(all);
      } else {
        m.columns.push_back(loose.columns[at]);
        m.weights.push_back(w);
        m.radius.push_back(r);
      }
      exact = exact && m.radius.back() == 0;
    }
    m.begin.push_back(m.columns.size());
  }
  if (exact) m.radius.clear();
  return m;
}

}  // namespace

RowMatrix collect_rows(Index rows, Index cols, const std::function<void(const VisitEntry&)>& list) {
  RowMatrix m;
  m.rows = rows;
  m.cols = cols;
  std::vector<std::size_t> count(static_cast<std::size_t>(rows) + 1, 0);
  const bool dense = count_entries(rows, cols, list, count);
  std::partial_sum(count.begin(), count.end(), count.begin());
  checkpoint(dense ? 20.0 * static_cast<double>(rows) * static_cast<double>(cols)
                   : 60.0 * static_cast<double>(count.back()));
  if (dense) {
    Entries entries(m, static_cast<std::size_t>(rows * cols));
    list([&](Index row, Index col, double lo, double hi) {
      if (lo != 0 || hi != 0) entries.add(static_cast<std::size_t>(row * cols + col), lo, hi);
    });
    return m;
  }
  m.begin = count;
  m.columns.resize(count.back());
  Entries entries(m, count.back());
  std::vector<std::size_t> next(count.begin(), count.end() - 1);
  list([&](Index row, Index col, double lo, double hi) {
    if (lo == 0 && hi == 0) return;
    const std::size_t at = next[static_cast<std::size_t>(row)]++;
    m.columns[at] = static_cast<std::int32_t>(col);
    entries.add(at, lo, hi);
  });
  return in_order(std::move(m));
}

namespace {

void visit_all(const RowMatrix& a, const VisitEntry& visit) {
  for (Index i = 0; i < a.rows; ++i) {
    a.for_row(i, [&](Index j, std::size_t at) {
      const double r = a.radius_at(at);
      visit(i, j, sub_down(a.weights[at], r), add_up(a.weights[at], r));
    });
  }
}

}  // namespace

// Each entry in plain arithmetic, and what n products and sums in any order can be off
// [rounding-9]: gamma_n of the sum of absolute values, the products of radii, and 2^-1074 for each
// underflow.
RowMatrix product(const RowMatrix& a, const RowMatrix& b) {
  constexpr double kSlack = 1 + 1e-9;  // the sums of absolute values are rounded, too
  struct Piece {
    Index row, col;
    double lo, hi;
  };
  const auto width = static_cast<std::size_t>(b.cols);
  std::vector<double> sum(width), size(width), spread(width);
  std::vector<bool> touched(width), copied(width);  // copied: one product by 1 or -1, exact
  std::vector<Index> places;
  std::vector<Piece> pieces;
  const bool exact = a.radius.empty() && b.radius.empty();
  const double per_row = 5 * product_cost(a, b) / std::max<double>(1, static_cast<double>(a.rows));
  for (Index i = 0; i < a.rows; ++i) {
    charge(per_row);
    a.for_row(i, [&](Index k, std::size_t at) {
      const double w = a.weights[at], r = a.radius_at(at);
      if (w == 0 && r == 0) return;
      b.for_row(k, [&](Index j, std::size_t place) {
        const auto c = static_cast<std::size_t>(j);
        const double v = b.weights[place];
        if (v == 0 && b.radius_at(place) == 0) return;
        if (!touched[c]) {
          touched[c] = true;
          places.push_back(j);
          sum[c] = size[c] = spread[c] = 0;
          copied[c] = exact && (std::fabs(w) == 1 || std::fabs(v) == 1);
        } else {
          copied[c] = false;
        }
        sum[c] += w * v;
        size[c] += std::fabs(w * v);
        if (exact) return;
        const double s = b.radius_at(place);
        spread[c] += std::fabs(w) * s + r * (std::fabs(v) + s);
      });
    });
    const auto terms = a.row_end(i) - a.row_begin(i);
    const double gamma = gamma_up(terms + 2);
    const double lost = mul_up(static_cast<double>(4 * terms + 4), kMinSubnormal);
    for (const Index j : places) {
      const auto c = static_cast<std::size_t>(j);
      touched[c] = false;
      const double off =
          copied[c] ? 0 : add_up(mul_up(add_up(mul_up(gamma, size[c]), spread[c]), kSlack), lost);
      pieces.push_back({i, j, sub_down(sum[c], off), add_up(sum[c], off)});
    }
    places.clear();
  }
  return collect_rows(a.rows, b.cols, [&](const VisitEntry& visit) {
    for (const Piece& p : pieces) visit(p.row, p.col, p.lo, p.hi);
  });
}

double product_cost(const RowMatrix& a, const RowMatrix& b) {
  return static_cast<double>(a.weights.size()) * static_cast<double>(b.weights.size()) /
         std::max<double>(1, static_cast<double>(b.rows));
}

RowMatrix sum(const RowMatrix& a, const RowMatrix& b) {
  return collect_rows(a.rows, a.cols, [&](const VisitEntry& visit) {
    visit_all(a, visit);
    visit_all(b, visit);
  });
}

RowMatrix identity_rows(Index n) {
  return collect_rows(n, n, [&](const VisitEntry& visit) {
    for (Index i = 0; i < n; ++i) visit(i, i, 1, 1);
  });
}

RowMatrix kept(const RowMatrix& a, const std::vector<bool>& rows, const std::vector<bool>& cols) {
  std::vector<Index> column(cols.size());
  Index width = 0;
  for (std::size_t j = 0; j < cols.size(); ++j) column[j] = cols[j] ? width++ : -1;
  RowMatrix m;
  m.cols = width;
  if (!a.dense()) m.begin.push_back(0);
  for (Index i = 0; i < a.rows; ++i) {
    if (!rows[static_cast<std::size_t>(i)]) continue;
    ++m.rows;
    a.for_row(i, [&](Index j, std::size_t at) {
      if (column[static_cast<std::size_t>(j)] < 0) return;
      m.weights.push_back(a.weights[at]);
      if (!a.radius.empty()) m.radius.push_back(a.radius[at]);
      if (!a.dense())
        m.columns.push_back(static_cast<std::int32_t>(column[static_cast<std::size_t>(j)]));
    });
    if (!a.dense()) m.begin.push_back(m.columns.size());
  }
  return m;
}

namespace {

std::vector<double> turned(const RowMatrix& a, const std::vector<double>& entries) {
  constexpr Index kBlock = 32;
  std::vector<double> out(entries.size());
  const auto turn = [&](Index from, Index to) {  // rows of the result
    for (Index i0 = 0; i0 < a.rows; i0 += kBlock) {
      for (Index j = from; j < to; ++j) {
        for (Index i = i0; i < std::min(i0 + kBlock, a.rows); ++i)
          out[static_cast<std::size_t>(j * a.rows + i)] =
              entries[static_cast<std::size_t>(i * a.cols + j)];
      }
    }
  };
  if (!entries.empty())
    parallel_for((a.cols + kBlock - 1) / kBlock, 1 + (Index{1} << 18) / (a.rows * kBlock),
                 [&](Index from, Index to) {
                   for (Index band = from; band < to; ++band)
                     turn(band * kBlock, std::min((band + 1) * kBlock, a.cols));
                 });
  return out;
}

}  // namespace

RowMatrix transposed(const RowMatrix& a) {
  if (a.dense()) return {a.cols, a.rows, turned(a, a.weights), turned(a, a.radius), {}, {}};
  return collect_rows(a.cols, a.rows, [&](const VisitEntry& visit) {
    visit_all(a, [&](Index i, Index j, double lo, double hi) { visit(j, i, lo, hi); });
  });
}

void add_product(const RowMatrix& a, const double* x, Index width, double* y) {
  if (a.rows == 0 || a.cols == 0) return;
  if (a.dense()) {
    const MatrixArg<double> all{a.weights.data(), a.cols};
    if (width == 1) return gemv(a.rows, a.cols, 1.0, all, x, 1, 1.0, y, 1);
    return gemm(a.rows, width, a.cols, 1.0, all, {x, width}, 1.0, y, width);
  }
  const auto entries = static_cast<Index>(a.weights.size()) / a.rows + 1;
  parallel_for(a.rows, std::max<Index>(64, kOperations / 8 / (entries * width)),
               [&](Index from, Index to) {
                 for (Index i = from; i < to; ++i) {
                   charge(static_cast<double>(a.row_end(i) - a.row_begin(i)) *
                          (1 + 0.25 * static_cast<double>(width)));
                   const std::size_t first = a.row_begin(i);
                   add_weighted_rows(a.weights.data() + first, a.columns.data() + first,
                                     a.row_end(i) - first, x, width, y + i * width);
                 }
               });
}

void add_transposed_product(const RowMatrix& a, const double* x, Index width, double* y) {
  if (a.rows == 0 || a.cols == 0) return;
  const MatrixArg<double> all{a.weights.data(), a.cols, true};
  if (width == 1) return gemv(a.cols, a.rows, 1.0, all, x, 1, 1.0, y, 1);
  gemm(a.cols, width, a.rows, 1.0, all, {x, width}, 1.0, y, width);
}

}  // namespace lipscope

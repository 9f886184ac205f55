// SPDX-License-Identifier: Apache-2.0
// Norms of sparse maps: cut into connected components, equal ones bounded once [norms-2].
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/interval.h"
#include "base/rounding.h"
#include "linalg/norm/definite.h"
#include "linalg/norm/norm_ways.h"

namespace lipscope {
namespace {

struct Entry {
  Index row, col;
  double weight, radius;
  friend auto operator<=>(const Entry&, const Entry&) = default;
};

// Compressed lines: entries of line i are [start[i], start[i + 1]).
struct Compressed {
  std::vector<Index> start, other;
  std::vector<double> weight, radius;
  Compressed(Index lines, const std::vector<Entry>& entries, bool by_row)
      : start(static_cast<std::size_t>(lines + 1)),
        other(entries.size()),
        weight(entries.size()),
        radius(entries.size()) {
    for (const Entry& e : entries) ++start[(by_row ? e.row : e.col) + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    std::vector<Index> next(start.begin(), start.end() - 1);
    for (const Entry& e : entries) {
      const Index at = next[by_row ? e.row : e.col]++;
      other[at] = by_row ? e.col : e.row;
      weight[at] = e.weight;
      radius[at] = e.radius;
    }
  }
  [[nodiscard]] Index lines() const { return static_cast<Index>(start.size()) - 1; }
};

class SparseMap final : public NormMap {
 public:
  SparseMap(Index rows, Index cols, const std::vector<Entry>& entries)
      : NormMap(rows, cols), by_row_(rows, entries, true), by_col_(cols, entries, false) {}

  std::vector<double> norms(Lines lines, Toward toward, double p) const override {
    const Compressed& c = lines == Lines::kRows ? by_row_ : by_col_;
    std::vector<double> out, line;
    for (Index i = 0; i < c.lines(); ++i) {
      const Index at = c.start[i], n = c.start[i + 1] - at;
      line.resize(static_cast<std::size_t>(n));
      line_magnitudes(toward, n, c.weight.data() + at, c.radius.data() + at, line.data());
      out.push_back(line_norm(toward, line, p));
    }
    return out;
  }
  void apply(bool adjoint, const double* x, double* y) const override {
    const Compressed& c = adjoint ? by_col_ : by_row_;
    for (Index i = 0; i < c.lines(); ++i) {
      y[i] = 0;
      for (Index e = c.start[i]; e < c.start[i + 1]; ++e) y[i] += c.weight[e] * x[c.other[e]];
    }
  }
  void magnitude_up(bool adjoint, const double* x, double* y) const override {
    const Compressed& c = adjoint ? by_col_ : by_row_;
    for (Index i = 0; i < c.lines(); ++i) {
      y[i] = 0;
      for (Index e = c.start[i]; e < c.start[i + 1]; ++e) {
        y[i] += (std::fabs(c.weight[e]) + c.radius[e]) * x[c.other[e]];
      }
      inflate_sums(y + i, 1, c.start[i + 1] - c.start[i]);
    }
  }
  void image_down(const double* x, double* y) const override {
    std::vector<double> at, size;
    for (Index i = 0; i < rows(); ++i) {
      const Index begin = by_row_.start[i], n = by_row_.start[i + 1] - begin;
      at.resize(static_cast<std::size_t>(n));
      size.resize(static_cast<std::size_t>(n));
      for (Index e = 0; e < n; ++e) {
        at[e] = x[by_row_.other[begin + e]];
        size[e] = std::fabs(at[e]);
      }
      const std::span<const double> weight(by_row_.weight.data() + begin, at.size());
      const std::span<const double> radius(by_row_.radius.data() + begin, at.size());
      const double value = sub_down(mignitude(dot_enclosure(weight, at)), dot_up(radius, size));
      y[i] = value > 0 ? value : 0;
    }
  }
  SpectralUpper spectral(const NormEffort& effort) const override {
    NormWays ways(effort);
    ways.consider("Cholesky factorisation [norms-7]",
                  [&](const NormEffort& e) { return factored_spectral(e); });
    return ways.take();
  }

 private:
  [[nodiscard]] SpectralUpper factored_spectral(const NormEffort& effort) const;
  Compressed by_row_, by_col_;
};

SpectralUpper SparseMap::factored_spectral(const NormEffort& effort) const {
  const bool tall = rows() >= cols();
  const Index n = std::min(rows(), cols());
  const Compressed& c = tall ? by_row_ : by_col_;  // lines of the long side
  double work = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  Index longest = 0;
  for (Index i = 0; i < c.lines(); ++i) {
    const Index length = c.start[i + 1] - c.start[i];
    work += static_cast<double>(length) * static_cast<double>(length);
  }
  const Compressed& s = tall ? by_col_ : by_row_;
  for (Index i = 0; i < s.lines(); ++i) longest = std::max(longest, s.start[i + 1] - s.start[i]);
  if (n > effort.max_dense || work > effort.max_work) return {};
  Gram gram(n);
  double* g = gram.data();
  std::fill_n(g, n * n, 0.0);
  std::vector<double> radius_rows, radius_cols;
  for (Index i = 0; i < c.lines(); ++i) {
    for (Index a = c.start[i]; a < c.start[i + 1]; ++a) {
      for (Index b = c.start[i]; b < c.start[i + 1]; ++b) {
        if (c.other[b] >= c.other[a]) g[c.other[a] * n + c.other[b]] += c.weight[a] * c.weight[b];
      }
    }
  }
  gram.finish(longest + 2);
  // ||R|| <= sqrt of its largest row sum times its largest column sum.
  double factors[2] = {0, 0};
  for (const Compressed* side : {&by_row_, &by_col_}) {
    double& most = factors[side == &by_col_];
    for (Index i = 0; i < side->lines(); ++i) {
      const auto count = static_cast<std::size_t>(side->start[i + 1] - side->start[i]);
      most = max_nan(most, abs_sum_up({side->radius.data() + side->start[i], count}));
    }
  }
  SpectralUpper result =
      top_of_gram(gram, effort.steps, gain_mul_up(sqrt_up(factors[0]), sqrt_up(factors[1])));
  if (!tall && !result.vector.empty()) {
    std::vector<double> x(static_cast<std::size_t>(cols()));
    apply(true, result.vector.data(), x.data());
    result.vector = std::move(x);
  }
  return result;
}

// Sorted by place, repeated places added up with the radius of that sum, zeros dropped.
std::vector<Entry> merged(const SparseView& map, const ScaledWeights& scaled) {
  std::vector<Entry> all;
  for (std::size_t i = 0; i < map.weight.size(); ++i) {
    LIPSCOPE_CHECK(map.row[i] >= 0 && map.row[i] < map.rows && map.col[i] >= 0 &&
                   map.col[i] < map.cols);
    all.push_back({map.row[i], map.col[i], scaled.weights()[i],
                   scaled.radius() == nullptr ? 0.0 : scaled.radius()[i]});
  }
  std::sort(all.begin(), all.end());
  std::vector<Entry> out;
  std::vector<double> same;
  for (std::size_t i = 0; i < all.size();) {
    same.clear();
    double radius = 0;
    std::size_t j = i;
    for (; j < all.size() && all[j].row == all[i].row && all[j].col == all[i].col; ++j) {
      same.push_back(all[j].weight);
      radius = add_up(radius, all[j].radius);
    }
    const Interval sum = same.size() == 1 ? point(same[0]) : Interval{sum_down(same), sum_up(same)};
    radius = add_up(radius, radius_up(sum));
    if (midpoint(sum) != 0 || radius != 0) {
      out.push_back({all[i].row, all[i].col, midpoint(sum), radius});
    }
    i = j;
  }
  return out;
}

Index find_root(std::vector<Index>& parent, Index i) {
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

// Entries of each connected component in its own numbering, with how often it occurs.
std::map<std::vector<Entry>, Index> components(Index rows, Index cols,
                                               const std::vector<Entry>& entries) {
  std::vector<Index> parent(static_cast<std::size_t>(rows + cols));
  std::iota(parent.begin(), parent.end(), 0);
  for (const Entry& e : entries) {
    parent[find_root(parent, e.row)] = find_root(parent, rows + e.col);
  }
  std::map<Index, std::vector<Entry>> parts;
  for (const Entry& e : entries) parts[find_root(parent, e.row)].push_back(e);
  std::map<std::vector<Entry>, Index> counted;
  std::vector<Index> number(static_cast<std::size_t>(rows + cols), -1);
  for (auto& [root, part] : parts) {
    // Columns numbered in their own order, so that shifted copies look the same.
    std::vector<Index> columns;
    for (const Entry& e : part) columns.push_back(e.col);
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      number[rows + columns[i]] = static_cast<Index>(i);
    }
    Index next_row = 0;
    for (Entry& e : part) {
      if (number[e.row] < 0) number[e.row] = next_row++;
      e.row = number[e.row];
      e.col = number[rows + e.col];
    }
    ++counted[std::move(part)];
  }
  return counted;
}

}  // namespace

NormBracket sparse_norm(const SparseView& map, const NormPair& norms, const NormEffort& effort) {
  if (map.rows == 0 || map.cols == 0) return {0, 0, "empty map"};
  LIPSCOPE_CHECK(map.row.size() == map.weight.size() && map.col.size() == map.weight.size());
  const ScaledWeights scaled(map.weight, nullptr);
  if (!scaled.usable()) return {0, kInf, "not finite"};
  const std::vector<Entry> entries = merged(map, scaled);
  if (entries.empty()) return {0, 0, "zero map"};
  NormBracket out{0, 0, ""};
  std::vector<double> lower, upper;
  for (const auto& [part, count] : components(map.rows, map.cols, entries)) {
    Index rows = 0, cols = 0;
    for (const Entry& e : part) {
      rows = std::max(rows, e.row + 1);
      cols = std::max(cols, e.col + 1);
    }
    const NormBracket b = bracket_of(SparseMap(rows, cols, part), norms, effort);
    lower.insert(lower.end(), static_cast<std::size_t>(count), b.lower);
    upper.insert(upper.end(), static_cast<std::size_t>(count), b.upper);
    if (!(b.upper <= out.upper)) {
      out.upper = b.upper;
      out.how = b.how;
    }
  }
  out.lower = diagonal_norm_down(lower, norms);
  out.upper = diagonal_norm_up(upper, norms);
  return scale_back(out, scaled.exponent());
}

}  // namespace lipscope

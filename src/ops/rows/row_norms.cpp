// SPDX-License-Identifier: Apache-2.0
// LpNormalization and LRN: rows divided by something computed from themselves.
#include <fmt/format.h>

#include <cmath>

#include "ops/elementwise/unary.h"
#include "ops/rows/rows.h"

namespace lipscope {
namespace {

// x / |x|_p for p = 1 or 2; a row of zeros stays.
struct LpNormalization {
  static constexpr std::string_view kName = "LpNormalization";
  bool one = false;

  double norm(Row x) const {
    double sum = 0;
    for (const double entry : x) sum += one ? std::abs(entry) : entry * entry;
    return one ? sum : std::sqrt(sum);
  }
  // Derivative of the norm with respect to entry i.
  double slope(Row x, Row y, std::size_t i) const {
    return one ? (x[i] > 0 ? 1 : x[i] < 0 ? -1 : 0) : y[i];
  }
  void value(std::span<double> row) const {
    const double size = norm(row);
    if (size == 0) return;
    for (double& x : row) x /= size;
  }
  void push(Row x, Row y, Row dx, std::span<double> dy) const {
    const double size = norm(x);
    double moved = 0;
    for (std::size_t i = 0; i < x.size(); ++i) moved += slope(x, y, i) * dx[i];
    for (std::size_t i = 0; i < x.size(); ++i) {
      dy[i] = size == 0 ? 0 : (dx[i] - y[i] * moved) / size;
    }
  }
  void pull(Row x, Row y, Row g, std::span<double> gx) const {
    const double size = norm(x), along = dot(y, g);
    for (std::size_t i = 0; i < x.size(); ++i) {
      gx[i] = size == 0 ? 0 : (g[i] - slope(x, y, i) * along) / size;
    }
  }

  static constexpr std::string_view kTheorem = "normalisation-9";
  void range(const Group& x, std::span<Interval> y) const {
    std::ranges::copy(unit_row_range(x, one), y.begin());
  }
  double gain(const Group& x, const NormPair& norms) const {
    return interpolated_norm_up(unit_row_norms(x, one), norms);
  }
};

// y = x * s^-beta with s = bias + alpha / size * (sum of squares of the neighbours).
struct Lrn {
  static constexpr std::string_view kName = "LRN";
  double alpha, beta, bias;
  Index before, after, size;  // neighbours on each side

  // out[i] = sum of row over the neighbours of i, seen from the centre or (mirrored) from a
  // neighbour.
  void sums(Row row, std::span<double> out, bool mirrored) const {
    const Index n = static_cast<Index>(row.size());
    const Index low = mirrored ? after : before, high = mirrored ? before : after;
    for (Index i = 0; i < n; ++i) {
      double sum = 0;
      for (Index j = std::max<Index>(0, i - low); j <= std::min(n - 1, i + high); ++j) {
        sum += row[static_cast<std::size_t>(j)];
      }
      out[static_cast<std::size_t>(i)] = sum;
    }
  }
  double rate() const { return alpha / static_cast<double>(size); }
  std::vector<double> scales(Row x) const {
    std::vector<double> squares(x.begin(), x.end()), s(x.size());
    for (double& entry : squares) entry *= entry;
    sums(squares, s, false);
    for (double& entry : s) entry = bias + rate() * entry;
    return s;
  }

  void value(std::span<double> row) const {
    const std::vector<double> s = scales(row);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] *= std::pow(s[i], -beta);
  }
  void push(Row x, Row, Row dx, std::span<double> dy) const {
    const std::vector<double> s = scales(x);
    std::vector<double> moved(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) moved[i] = x[i] * dx[i];
    sums(moved, dy, false);
    for (std::size_t i = 0; i < x.size(); ++i) {
      dy[i] = std::pow(s[i], -beta) * (dx[i] - 2 * beta * rate() * x[i] / s[i] * dy[i]);
    }
  }
  void pull(Row x, Row, Row g, std::span<double> gx) const {
    const std::vector<double> s = scales(x);
    std::vector<double> weighted(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      weighted[i] = g[i] * x[i] * std::pow(s[i], -beta - 1);
    }
    sums(weighted, gx, true);
    for (std::size_t i = 0; i < x.size(); ++i) {
      gx[i] = std::pow(s[i], -beta) * g[i] - 2 * beta * rate() * x[i] * gx[i];
    }
  }
};

Imported import_lp_normalization(const OnnxNode& node) {
  require_real(node);
  const Index p = node.integer("p", 2);
  if (p != 1 && p != 2) node.malformed(fmt::format("p = {}", p));
  const Index axis = OnnxNode::axis(node.integer("axis", -1), node.rank(0));
  const RowSplit split = RowSplit::of(node.input(0).shape, axis, axis + 1);
  return std::make_shared<RowOp<LpNormalization>>(LpNormalization{p == 1}, split);
}

Imported import_lrn(const OnnxNode& node) {
  require_real(node);
  const Index size = node.integer("size");
  if (size < 1 || node.rank(0) < 2) node.malformed("size or rank");
  const Index channels = node.input(0).shape[1];
  const Lrn lrn{.alpha = node.real("alpha"),
                .beta = node.real("beta"),
                .bias = node.real("bias"),
                .before = std::min((size - 1) / 2, channels),
                .after = std::min(size / 2, channels),
                .size = size};
  return std::make_shared<RowOp<Lrn>>(lrn, RowSplit::of(node.input(0).shape, 1, 2));
}

std::vector<OpCase> lp_cases(Rng& rng) {
  return {
      {.inputs = {{random_tensor(rng, {3, 4})}}},
      {.inputs = {{random_tensor_avoiding(rng, {2, 3, 4}, {0})}},
       .attributes = {{"axis", Index{1}}, {"p", Index{1}}}},
      {.inputs = {{random_tensor(rng, {2, 3, 4})}}, .attributes = {{"axis", Index{-3}}}},
      {.inputs = {{random_tensor(rng, {2, 0})}}},
  };
}

std::vector<OpCase> lrn_cases(Rng& rng) {
  return {
      {.inputs = {{random_tensor(rng, {1, 6, 2, 2})}}, .attributes = {{"size", Index{3}}}},
      {.inputs = {{random_tensor(rng, {2, 5, 3})}},
       .attributes = {{"size", Index{4}}, {"alpha", 0.5}, {"beta", 0.6}, {"bias", 2.0}}},
  };
}

}  // namespace

std::vector<OpKind> op_row_norms() {
  return {{"LpNormalization", import_lp_normalization, lp_cases}, {"LRN", import_lrn, lrn_cases}};
}

}  // namespace lipscope

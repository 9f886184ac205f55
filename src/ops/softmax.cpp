// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/rows.h"
#include "ops/unary.h"
#include "softmax/box.h"
#include "softmax/calculus.h"

namespace lipscope {
namespace {

struct Softmax {
  static constexpr std::string_view kName = "Softmax";
  void value(std::span<double> row) const {
    const double top = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (double& x : row) {
      x = std::exp(x - top);
      sum += x;
    }
    for (double& x : row) x /= sum;
  }
  // The Jacobian diag(y) - y y' is symmetric.
  void push(Row, Row y, Row dx, std::span<double> dy) const {
    const double mean = dot(y, dx);
    for (std::size_t i = 0; i < y.size(); ++i) dy[i] = y[i] * (dx[i] - mean);
  }
  void pull(Row x, Row y, Row g, std::span<double> gx) const { push(x, y, g, gx); }

  static constexpr std::string_view kTheorem = "softmax-13";
  void range(const Group& x, std::span<Interval> y) const {
    const std::vector<ShareRange> ranges = softmax_ranges({x.lower, x.upper});
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = ranges[i].share;
  }
  double gain(const Group& x, const NormPair& norms) const {
    return softmax_box_norm_up({x.lower, x.upper}, norms);
  }
};

struct LogSoftmax {
  static constexpr std::string_view kName = "LogSoftmax";
  void value(std::span<double> row) const { log_softmax(row); }
  // With p = exp(y): J = I - 1 p'.
  void push(Row, Row y, Row dx, std::span<double> dy) const {
    double mean = 0;
    for (std::size_t i = 0; i < y.size(); ++i) mean += std::exp(y[i]) * dx[i];
    for (std::size_t i = 0; i < y.size(); ++i) dy[i] = dx[i] - mean;
  }
  void pull(Row, Row y, Row g, std::span<double> gx) const {
    double sum = 0;
    for (const double entry : g) sum += entry;
    for (std::size_t i = 0; i < y.size(); ++i) gx[i] = g[i] - std::exp(y[i]) * sum;
  }

  static constexpr std::string_view kTheorem = "normalisation-5";
  void range(const Group& x, std::span<Interval> y) const {
    const SoftmaxTails tails(x);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = tails.log_share(i);
  }
  double gain(const Group& x, const NormPair& norms) const {
    if (x.size() < 2) return 0;
    const double local = interpolated_norm_up(log_softmax_norms(SoftmaxTails(x)), norms);
    if (norms.in != norms.out) return local;
    return std::min(local, log_softmax_global_norm(norms.in, static_cast<Index>(x.size()), 1).hi);
  }
};

// 1 at the first of the largest entries (a NaN counts as largest), 0 elsewhere.
struct Hardmax {
  static constexpr std::string_view kName = "Hardmax";
  void value(std::span<double> row) const {
    const auto top = std::max_element(row.begin(), row.end(), [](double a, double b) {
      return std::isnan(b) ? !std::isnan(a) : a < b;
    });
    const auto at = top - row.begin();
    std::fill(row.begin(), row.end(), 0.0);
    row[static_cast<std::size_t>(at)] = 1;
  }
  void push(Row, Row, Row, std::span<double> dy) const { std::fill(dy.begin(), dy.end(), 0.0); }
  void pull(Row, Row, Row, std::span<double> gx) const { std::fill(gx.begin(), gx.end(), 0.0); }

  static constexpr std::string_view kTheorem = "pointwise-3";
  void range(const Group& x, std::span<Interval> y) const {
    for (std::size_t i = 0; i < x.size(); ++i) {
      bool certain = true, possible = true;
      for (std::size_t j = 0; j < x.size(); ++j) {
        if (j == i) continue;
        // Of equal entries the first wins.
        certain = certain && (i < j ? x.lower[i] >= x.upper[j] : x.lower[i] > x.upper[j]);
        possible = possible && (i < j ? x.upper[i] >= x.lower[j] : x.upper[i] > x.lower[j]);
      }
      y[i] = {certain ? 1.0 : 0.0, possible ? 1.0 : 0.0};
    }
  }
  double gain(const Group& x, const NormPair&) const {
    std::vector<Interval> y(x.size());
    range(x, y);
    for (const Interval& entry : y) {
      if (entry.lo != entry.hi) return kInf;
    }
    return 0;
  }
};

// Below opset 13 the tensor is flattened to a matrix at the axis, whose rows are normalised.
template <class F>
Imported import_row_function(const OnnxNode& node) {
  require_real(node);
  const Shape& shape = node.input(0).shape;
  const bool flattens = node.opset() < 13;
  const Index rank = node.rank(0), given = node.integer("axis", flattens ? 1 : -1);
  if (rank == 0) {
    if (given != 0 && given != -1 && !(flattens && !node.has("axis"))) {
      node.malformed("axis of a scalar");
    }
    return std::make_shared<RowOp<F>>(F{}, RowSplit{});
  }
  // A flattening axis may be the rank itself: rows of one entry.
  const Index axis = flattens && given == rank ? rank : OnnxNode::axis(given, rank);
  return std::make_shared<RowOp<F>>(F{}, RowSplit::of(shape, axis, flattens ? rank : axis + 1));
}

std::vector<OpCase> softmax_cases(Rng& rng) {
  std::vector<OpCase> cases = {
      {.inputs = {{random_tensor(rng, {3, 5})}}},
      {.inputs = {{random_tensor(rng, {2, 3, 4})}}, .attributes = {{"axis", Index{1}}}},
      {.inputs = {{random_tensor(rng, {2, 3, 4})}}, .attributes = {{"axis", Index{0}}}},
      {.inputs = {{random_tensor(rng, {2, 3, 4})}}, .opset = 11},
      {.inputs = {{random_tensor(rng, {2, 3, 4})}}, .attributes = {{"axis", Index{2}}}, .opset = 9},
      {.inputs = {{random_tensor(rng, {2, 0})}}},
      {.inputs = {{random_tensor(rng, {0, 3})}}},
      {.inputs = {{random_tensor(rng, {4})}}, .attributes = {{"axis", Index{-1}}}},
      {.inputs = {{random_tensor(rng, {2, 6}, 500, 510)}}},
  };
  return cases;
}

template <class F>
OpKind row_kind() {
  return {F::kName, import_row_function<F>, softmax_cases};
}

}  // namespace

std::vector<OpKind> op_softmax() {
  return {row_kind<Softmax>(), row_kind<LogSoftmax>(), row_kind<Hardmax>()};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "attention/local_norm.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attention/interval_matrix.h"
#include "bounds/jumps.h"
#include "bounds/near_point.h"
#include "bounds/wide_point.h"
#include "linalg/norm/definite.h"
#include "linalg/norm/operator_norm.h"
#include "lipscope/evaluate.h"

namespace lipscope {
namespace {

constexpr double kClose = 1e-9;      // a proved value this near the plain one is good enough
constexpr double kCloseShare = 0.1;  // of the effort: what a closer one may cost

// Products with the Jacobian of output 0 in plain arithmetic.
class PlainJacobian {
 public:
  PlainJacobian(const Graph& graph, std::span<const Tensor> inputs)
      : graph_(graph), trace_(graph, inputs) {}

  [[nodiscard]] std::vector<double> push(std::span<const double> x) const {
    const Tensor y = trace_.jvp(split_inputs(graph_, x))[0];
    return {y.doubles().begin(), y.doubles().end()};
  }
  [[nodiscard]] std::vector<double> pull(std::vector<double> weights) const {
    std::vector<Tensor> all(graph_.outputs().size());
    all[0] = Tensor(ElementType::kFloat64, graph_.value(graph_.outputs()[0]).type.shape,
                    std::move(weights));
    std::vector<double> out;
    const std::vector<Tensor> parts = trace_.vjp(all);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (!is_floating(graph_.value(graph_.inputs()[i]).type.type)) continue;
      const auto part = parts[i].doubles();
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }

 private:
  const Graph& graph_;
  Trace trace_;
};

std::vector<Index> rows_or_all(const Graph& graph, std::vector<Index> rows) {
  if (!rows.empty()) return rows;
  rows.resize(static_cast<std::size_t>(element_count(graph.value(graph.outputs()[0]).type.shape)));
  std::iota(rows.begin(), rows.end(), Index{0});
  return rows;
}

std::vector<double> unit_row(const Graph& graph, Index row) {
  std::vector<double> weights(
      static_cast<std::size_t>(element_count(graph.value(graph.outputs()[0]).type.shape)));
  weights[static_cast<std::size_t>(row)] = 1;
  return weights;
}

std::vector<Box> point_boxes(std::span<const Tensor> inputs) {
  std::vector<Box> boxes;
  for (const Tensor& tensor : inputs) {
    const Tensor real = tensor.cast(ElementType::kFloat64);
    boxes.push_back({real, real});
  }
  return boxes;
}

std::vector<Tensor> as_doubles(const Graph& graph, std::span<const Tensor> inputs) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    out.push_back(inputs[i].reshaped(graph.value(graph.inputs()[i]).type.shape));
  return out;
}

}  // namespace

std::optional<double> box_norm_up(const Graph& graph, std::span<const Box> boxes,
                                  const std::vector<Index>& wanted, const LocalNormEffort& effort) {
  const std::vector<Index> rows = rows_or_all(graph, wanted);
  const ValueId out = graph.outputs()[0];
  DerivativeBoxes derivative(graph, boxes);
  const Index cols = input_size(graph);
  const double work = derivative.work(out) * static_cast<double>(rows.size());
  if (work > effort.proof || !derivative.unsupported(out).empty()) return std::nullopt;
  CentredMatrix jacobian(static_cast<Index>(rows.size()), cols);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (effort.should_stop()) return std::nullopt;
    const auto row = derivative.pull(unit_row(graph, rows[r]), out);
    if (!row) return std::nullopt;
    for (std::size_t c = 0; c < row->size(); ++c) {
      const std::size_t at = r * static_cast<std::size_t>(cols) + c;
      if (!is_bounded((*row)[c])) return std::nullopt;
      jacobian.middle[at] = midpoint((*row)[c]);
      jacobian.radius[at] = radius_up((*row)[c]);
    }
  }
  const double norm = spectral_norm_up(jacobian);
  return std::isfinite(norm) ? std::optional(norm) : std::nullopt;
}

LocalNorm local_norm(const Graph& graph, std::span<const Tensor> given,
                     const std::vector<Index>& wanted, const LocalNormEffort& effort) {
  const std::vector<Tensor> inputs = as_doubles(graph, given);
  const std::vector<Index> rows = rows_or_all(graph, wanted);
  const ValueId out = graph.outputs()[0];
  const Index size = input_size(graph);
  const auto all = static_cast<std::size_t>(element_count(graph.value(out).type.shape));
  std::vector<bool> keep(all);
  for (const Index r : rows) keep[static_cast<std::size_t>(r)] = true;
  const auto kept = [&](std::vector<double> y) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = keep[i] ? y[i] : 0;
    return y;
  };
  const PlainJacobian jacobian(graph, inputs);
  bool stopped = false;
  const auto multiply = [&](const double* x, double* y) {
    // A stopped iteration sees zeros and ends.
    stopped = stopped || effort.should_stop();
    if (stopped) return static_cast<void>(std::fill_n(y, size, 0.0));
    const auto pulled = jacobian.pull(kept(jacobian.push({x, static_cast<std::size_t>(size)})));
    std::ranges::copy(pulled, y);
  };
  LocalNorm norm;
  norm.direction = lanczos(size, multiply, {}, effort.tolerance, effort.steps).vector;
  if (norm.direction.empty()) norm.direction.assign(static_cast<std::size_t>(size), 0.0);
  const double length = norm2_up(norm.direction);
  const std::vector<double> moved = kept(jacobian.push(norm.direction));
  const double seen = length > 0 ? norm2_down(moved) / length : 0;
  if (!std::isfinite(seen)) return norm;
  norm.lower = Bound{seen, Guarantee::kReal, "attention-17"};

  const std::vector<Box> boxes = point_boxes(inputs);
  DerivativeBoxes derivative(graph, boxes);
  if (const double work = derivative.work(out); !stopped && length > 0) {
    double proved = 0;
    std::string theorem = "attention-17";
    const auto prove = [&](const std::optional<DerivativeBoxes::Row>& row, const char* by) {
      std::vector<Interval> parts;
      for (const Index r : rows)
        parts.push_back(row ? (*row)[static_cast<std::size_t>(r)] : kEntire);
      const double found = div_down(length_down(parts), length);
      if (!(found > proved)) return;
      proved = found;
      theorem = by;
    };
    const auto close = [&] { return proved >= seen * (1 - kClose); };
    if (work <= effort.proof) prove(derivative.push(norm.direction, out), "attention-17");
    if (!close() && work <= kCloseShare * effort.proof)
      prove(NearPoint(graph, boxes).push(norm.direction, out), "attention-20");
    if (!close() && work <= effort.wide)
      prove(wide_push(graph, inputs, norm.direction, out, effort.should_stop), "attention-21");
    // Where intervals have grown too wide the plain value says more.
    if (proved >= 0.5 * seen) norm.lower = Bound{proved, Guarantee::kProved, theorem};
  }
  if (const auto proved = box_norm_up(graph, boxes, wanted, effort);
      proved && *proved <= 2 * std::max(seen, kMinSubnormal) &&
      jump_next_to(graph, inputs).empty()) {
    norm.upper = Bound{*proved, Guarantee::kProved, "attention-17"};
    return norm;
  }
  if (static_cast<Index>(rows.size()) <= effort.real_rows && !stopped) {
    CentredMatrix plain(static_cast<Index>(rows.size()), size);
    for (std::size_t r = 0; r < rows.size() && !effort.should_stop(); ++r) {
      const auto row = jacobian.pull(unit_row(graph, rows[r]));
      std::ranges::copy(row, plain.middle.begin() + static_cast<Index>(r) * size);
    }
    if (effort.should_stop()) return norm;
    norm.upper = Bound{spectral_norm_up(plain), Guarantee::kReal, "attention-17"};
    return norm;
  }
  if (!stopped) norm.upper = Bound{seen, Guarantee::kEstimate, "lanczos"};
  return norm;
}

}  // namespace lipscope

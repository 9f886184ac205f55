// SPDX-License-Identifier: Apache-2.0
#include "robust/well_defined.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "bounds/boxes.h"
#include "ops/elementwise.h"

namespace lipscope {
namespace {

bool has_ends(const Box& box) {
  const auto is_end = [](double x) { return std::isfinite(x); };
  return std::ranges::all_of(box.lower.doubles(), is_end) &&
         std::ranges::all_of(box.upper.doubles(), is_end);
}

// Where a function of single entries has no value its range is the whole line.
bool has_values_at(const Op& op, const Tensor& corner) {
  const Box at{corner, corner};
  const auto range = op.range(std::span(&at, 1));
  return !range || has_ends((*range)[0]);
}

bool has_values(const Graph& graph, const Node& node, ValueBoxes& boxes) {
  std::vector<Box> in;
  for (const ValueId id : node.inputs) {
    if (!is_floating(graph.value(id).type.type)) return true;
    in.push_back(boxes.at(id));
    if (!has_ends(in.back())) return true;  // nothing is known of it
  }
  if (!is_floating(graph.value(node.outputs[0]).type.type)) return true;
  if (!has_ends(boxes.at(node.outputs[0])) && node.op->range(in)) return false;
  if (dynamic_cast<const Elementwise*>(node.op.get()) == nullptr) return true;
  return has_values_at(*node.op, in[0].lower) && has_values_at(*node.op, in[0].upper);
}

bool has_values(const Graph& graph, std::span<const double> point, double radius) {
  std::vector<double> low, high;
  for (const double x : point) {
    low.push_back(sub_down(x, radius));
    high.push_back(add_up(x, radius));
  }
  const std::vector<Tensor> lower = split_inputs(graph, low), upper = split_inputs(graph, high);
  std::vector<Box> inputs;
  for (std::size_t i = 0; i < lower.size(); ++i) inputs.push_back({lower[i], upper[i]});
  ValueBoxes boxes(graph, inputs);
  return std::ranges::all_of(graph.nodes(),
                             [&](const Node& node) { return has_values(graph, node, boxes); });
}

}  // namespace

double well_defined_radius(const Graph& graph, std::span<const double> point, double most) {
  if (has_values(graph, point, most)) return most;
  double low = 0, high = most;
  constexpr int kHalvings = 30;
  for (int step = 0; step < kHalvings && high > 1.01 * low; ++step) {
    const double middle = low > 0 ? 0.5 * (low + high) : high / 8;
    (has_values(graph, point, middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace lipscope

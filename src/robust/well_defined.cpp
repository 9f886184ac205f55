// SPDX-License-Identifier: Apache-2.0
#include "robust/well_defined.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "bounds/boxes.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linear/multilinear.h"
#include "robust/radius_search.h"

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

// What a gain is about are values: a finite one says that there are some for all inputs in the
// boxes.
bool has_gains(const Graph& graph, const Node& node, std::span<const Box> in) {
  if (node.op->multilinear() != nullptr) return true;
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (!is_floating(graph.value(node.inputs[k]).type.type)) continue;
    const auto gain = node.op->gain({{Norm(2), Norm(2)}, in, static_cast<Index>(k), true});
    if (!gain || !std::isfinite(gain->value)) return false;
  }
  return true;
}

bool has_values(const Graph& graph, const Node& node, ValueBoxes& boxes) {
  if (!is_floating(graph.value(node.outputs[0]).type.type)) return true;
  std::vector<Box> in;
  bool known = true;
  for (const ValueId id : node.inputs) {
    const Value& value = graph.value(id);
    in.push_back(boxes.at(id));
    known =
        known && (is_floating(value.type.type) ? has_ends(in.back()) : value.constant != nullptr);
  }
  if (!known) return has_gains(graph, node, in);
  if (!has_ends(boxes.at(node.outputs[0])))
    return !node.op->range(in) && has_gains(graph, node, in);
  if (node.op->elementwise() == nullptr) return true;
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
  constexpr int kHalvings = 30;
  RadiusRange range{0, most};
  narrow_radius(
      range, kHalvings, 1.01,
      [](const RadiusRange& r) { return r.low > 0 ? middle_of(r) : r.high / 8; },
      [&](double radius) { return has_values(graph, point, radius) ? radius : 0; },
      [] { return false; });
  return range.low;
}

}  // namespace lipscope

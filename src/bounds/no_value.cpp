// SPDX-License-Identifier: Apache-2.0
#include "bounds/no_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace lipscope {
namespace {

bool holds_nan(const Tensor& tensor) {
  return std::ranges::any_of(tensor.doubles(), [](double x) { return std::isnan(x); });
}

bool is_one_point(const Box& box) {
  const auto low = box.lower.doubles(), high = box.upper.doubles();
  for (std::size_t i = 0; i < low.size(); ++i) {
    if (!(low[i] == high[i] && std::isfinite(low[i]))) return false;
  }
  return true;
}

// No real number, or nothing known of one.
bool is_no_number(double low, double high) {
  return (low == -kInf && high == kInf) || (low == high && std::isinf(low));
}

bool has_no_slope(const Elementwise& curve, const Box& box) {
  const auto low = box.lower.doubles(), high = box.upper.doubles();
  for (std::size_t i = 0; i < low.size(); ++i) {
    if (!std::isfinite(low[i]) || !std::isfinite(high[i])) continue;
    if (const auto slopes = curve.slopes({low[i], high[i]}); slopes && is_nan(*slopes)) return true;
  }
  return false;
}

// Of one point a function that has a value there tells a range with an end.
bool has_no_value_at_point(const Op& op, std::span<const Box> point, std::size_t output) {
  const auto range = op.range(point);
  if (!range || !is_floating((*range)[output].lower.type())) return false;
  const auto low = (*range)[output].lower.doubles(), high = (*range)[output].upper.doubles();
  for (std::size_t i = 0; i < low.size(); ++i) {
    if (is_no_number(low[i], high[i])) return true;
  }
  return false;
}

bool is_one_point(const Constant& constant) {
  return !is_floating(constant.type()) || is_one_point(constant.box());
}

// By how it was computed. Where that gives no number in plain arithmetic, there may be one
// nevertheless: of a constant that stands for any number.
bool has_no_value(const Constant& constant) {
  if (!is_floating(constant.type()) || !holds_nan(constant.approximate())) return false;
  const Folded* folded = constant.folded();
  if (folded == nullptr) return constant.exact() != nullptr;
  std::vector<Box> in;
  bool one_point = true;
  for (const auto& input : folded->inputs) {
    if (has_no_value(*input)) return true;
    in.push_back(input->box());
    one_point = one_point && is_one_point(*input);
  }
  const auto* curve = folded->op->elementwise();
  if (curve != nullptr && is_floating(folded->inputs[0]->type()) && has_no_slope(*curve, in[0]))
    return true;
  return one_point && has_no_value_at_point(*folded->op, in, folded->output);
}

bool has_no_value(const Node& node, ValueBoxes& boxes) {
  const Graph& graph = boxes.graph();
  if (!is_floating(graph.value(node.outputs[0]).type.type)) return false;
  bool one_point = true;
  for (const ValueId id : node.inputs) {
    const Value& value = graph.value(id);
    const bool real = is_floating(value.type.type);
    if (value.constant && has_no_value(*value.constant)) return true;
    one_point = one_point && (real ? is_one_point(boxes.at(id)) : value.constant != nullptr);
  }
  const auto* curve = node.op->elementwise();
  if (curve != nullptr && has_no_slope(*curve, boxes.at(node.inputs[0]))) return true;
  if (!one_point) return false;
  std::vector<Box> in;
  for (const ValueId id : node.inputs) in.push_back(boxes.at(id));
  return has_no_value_at_point(*node.op, in, 0);
}

}  // namespace

std::string no_value_anywhere(ValueBoxes& boxes) {
  const Graph& graph = boxes.graph();
  std::vector<bool> live(graph.values().size());
  live[graph.outputs()[0].index] = true;
  const auto nodes = graph.nodes();
  for (std::size_t n = nodes.size(); n-- > 0;) {
    const bool used =
        std::ranges::any_of(nodes[n].outputs, [&](ValueId id) { return live[id.index]; });
    for (const ValueId id : nodes[n].inputs) live[id.index] = live[id.index] || used;
  }
  for (const Node& node : nodes) {
    const bool used = std::ranges::any_of(node.outputs, [&](ValueId id) { return live[id.index]; });
    if (used && has_no_value(node, boxes))
      return fmt::format("node '{}': operator {} has no value for any input of the domain",
                         node.name, node.op->name());
  }
  return {};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "bounds/jumps.h"

#include <algorithm>

#include "base/rounding.h"
#include "bounds/boxes.h"
#include "ops/elementwise/elementwise.h"

namespace lipscope {
namespace {

std::vector<Box> boxes_next_to(std::span<const Tensor> inputs) {
  std::vector<Box> boxes;
  for (const Tensor& tensor : inputs) {
    const Tensor real = tensor.cast(ElementType::kFloat64);
    Box box{real, real};
    if (is_floating(tensor.type())) {
      for (double& e : box.lower.doubles()) e = sub_down(e, kMinSubnormal);
      for (double& e : box.upper.doubles()) e = add_up(e, kMinSubnormal);
    }
    boxes.push_back(std::move(box));
  }
  return boxes;
}

bool has_bounded_slopes(const Elementwise& curve, const Box& box) {
  const auto lower = box.lower.doubles(), upper = box.upper.doubles();
  for (std::size_t i = 0; i < lower.size(); ++i) {
    const auto slopes = curve.slopes({lower[i], upper[i]});
    if (!slopes || !is_bounded(*slopes)) return false;
  }
  return true;
}

}  // namespace

std::string jump_next_to(const Graph& graph, std::span<const Tensor> inputs) {
  ValueBoxes boxes(graph, boxes_next_to(inputs));
  std::vector<bool> wanted(graph.values().size());
  wanted[graph.outputs()[0].index] = true;
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    if (std::ranges::none_of(node.outputs, [&](ValueId id) { return wanted[id.index]; })) continue;
    for (const ValueId id : node.inputs) wanted[id.index] = true;
    const Elementwise* curve = node.op->elementwise();
    if (curve == nullptr || !is_floating(graph.value(node.outputs[0]).type.type)) continue;
    if (!has_bounded_slopes(*curve, boxes.at(node.inputs[0]))) return node.name;
  }
  return {};
}

}  // namespace lipscope

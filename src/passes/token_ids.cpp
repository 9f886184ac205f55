// SPDX-License-Identifier: Apache-2.0
#include "passes/token_ids.h"

#include <algorithm>
#include <array>

namespace lipscope {
namespace {

// What a value that is no constant has to do with the inputs.
enum class Origin {
  kMoving,    // moves with a floating input, or steps with what moves
  kGiven,     // a floating input as it is, perhaps in another layout
  kDiscrete,  // a function of integers given to the model
};

bool keeps_entries(std::string_view op) {
  constexpr std::array kLayouts = {"Cast",  "Flatten", "Identity",  "Reshape",
                                   "Slice", "Squeeze", "Transpose", "Unsqueeze"};
  return std::ranges::find(kLayouts, op) != kLayouts.end();
}

bool floating(const Graph& graph, ValueId id) { return is_floating(graph.value(id).type.type); }

std::vector<Origin> origins(const Graph& graph) {
  std::vector<Origin> origin(graph.values().size(), Origin::kDiscrete);
  for (const ValueId id : graph.inputs())
    if (floating(graph, id)) origin[id.index] = Origin::kGiven;
  for (const Node& node : graph.nodes()) {
    const auto any = [&](Origin wanted) {
      return std::ranges::any_of(node.inputs,
                                 [&](ValueId id) { return origin[id.index] == wanted; });
    };
    const bool given = any(Origin::kGiven);
    for (const ValueId out : node.outputs) {
      if (any(Origin::kMoving) || (given && !keeps_entries(node.op->name())))
        origin[out.index] = Origin::kMoving;
      else if (given)
        origin[out.index] = floating(graph, out) ? Origin::kGiven : Origin::kDiscrete;
    }
  }
  return origin;
}

// Values that a floating input reaches without becoming an integer on the way.
std::vector<bool> moved_continuously(const Graph& graph) {
  std::vector<bool> moved(graph.values().size());
  for (const ValueId id : graph.inputs()) moved[id.index] = floating(graph, id);
  for (const Node& node : graph.nodes()) {
    const bool any = std::ranges::any_of(node.inputs, [&](ValueId id) { return moved[id.index]; });
    for (const ValueId id : node.outputs) moved[id.index] = any && floating(graph, id);
  }
  return moved;
}

}  // namespace

const Node* embedding_of_ids(const Graph& graph, ValueId end) {
  if (moved_continuously(graph)[end.index]) return nullptr;
  const std::vector<Origin> origin = origins(graph);
  for (const Node& node : graph.nodes()) {
    if (node.op->name() != "Gather" || node.inputs.size() != 2) continue;
    const ValueId indices = node.inputs[1];
    if (floating(graph, node.outputs[0]) && !graph.value(indices).constant &&
        origin[indices.index] == Origin::kDiscrete)
      return &node;
  }
  return nullptr;
}

}  // namespace lipscope

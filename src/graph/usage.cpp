// SPDX-License-Identifier: Apache-2.0
#include "graph/usage.h"

#include <algorithm>

namespace lipscope {

std::vector<bool> used_values(const Graph& graph) {
  std::vector<bool> used(graph.values().size());
  for (const ValueId id : graph.outputs()) used[id.index] = true;
  for (const Node& node : graph.nodes()) {
    for (const ValueId id : node.inputs) used[id.index] = true;
  }
  return used;
}

const Node* first_step(const Graph& graph) {
  const std::vector<bool> used = used_values(graph);
  std::vector<bool> moves(graph.values().size());
  for (const ValueId id : graph.inputs()) moves[id.index] = true;
  for (const Node& node : graph.nodes()) {
    if (std::ranges::none_of(node.inputs, [&](ValueId id) { return moves[id.index]; })) continue;
    for (const ValueId id : node.outputs) {
      moves[id.index] = true;
      if (used[id.index] && !is_floating(graph.value(id).type.type)) return &node;
    }
  }
  return nullptr;
}

}  // namespace lipscope

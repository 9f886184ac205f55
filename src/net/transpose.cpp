// SPDX-License-Identifier: Apache-2.0
#include "net/transpose.h"

#include <algorithm>

namespace lipscope {

UnitNetwork transposed(const UnitNetwork& network) {
  UnitNetwork turned;
  turned.exponent = network.exponent;
  const std::vector<UnitNode>& nodes = network.nodes;
  turned.nodes.resize(nodes.size());
  for (std::size_t k = nodes.size(); k-- > 0;) {
    UnitNode& node = turned.nodes[nodes.size() - 1 - k];
    node.size = nodes[k].size;
    node.slopes = nodes[k].slopes;
    node.origin = nodes[k].origin;
    node.below = nodes[k].below;
    for (const UnitNode::Edge& edge : node.edges)
      node.depth = std::max(node.depth, turned.nodes[edge.from].depth + 1);
    for (const auto& [from, map] : nodes[k].edges)
      turned.nodes[nodes.size() - 1 - from].edges.push_back(
          {nodes.size() - 1 - k, transposed(map)});
  }
  return turned;
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "sdp/reverse.h"

#include <algorithm>

namespace lipscope {

SdpNetwork reversed(const SdpNetwork& network) {
  SdpNetwork turned;
  turned.exponent = network.exponent;
  const std::vector<SdpNode>& nodes = network.nodes;
  turned.nodes.resize(nodes.size());
  for (std::size_t k = nodes.size(); k-- > 0;) {
    SdpNode& node = turned.nodes[nodes.size() - 1 - k];
    node.size = nodes[k].size;
    node.slopes = nodes[k].slopes;
    node.origin = nodes[k].origin;
    node.below = nodes[k].below;
    for (const SdpNode::Edge& edge : node.edges)
      node.depth = std::max(node.depth, turned.nodes[edge.from].depth + 1);
    for (const auto& [from, map] : nodes[k].edges)
      turned.nodes[nodes.size() - 1 - from].edges.push_back(
          {nodes.size() - 1 - k, transposed(map)});
  }
  return turned;
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "sdp/prefix.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "base/check.h"
#include "base/rounding.h"

namespace lipscope {

bool passes_all(const UnitNetwork& network, std::size_t node) {
  for (std::size_t k = node + 1; k < network.nodes.size(); ++k) {
    for (const UnitNode::Edge& edge : network.nodes[k].edges) {
      if (edge.from < node) return false;
    }
  }
  return node > 0;
}

UnitNetwork before_node(const UnitNetwork& network, std::size_t node) {
  const auto end = network.nodes.begin() + static_cast<Index>(node);
  UnitNetwork before{{network.nodes.begin(), end}, network.exponent};
  before.nodes.push_back({end->size, end->edges, {}, {}, end->depth, nullptr});
  return before;
}

UnitNetwork behind_factor(const UnitNetwork& network, std::size_t node,
                          const std::vector<double>& factor, int exponent) {
  LIPSCOPE_CHECK(passes_all(network, node));
  const Index n = network.nodes[node].size;
  RowMatrix map{n, n, factor, {}, {}, {}};
  bool lost = false;
  for (double& e : map.weights) {
    const bool zero = e == 0;
    e = std::ldexp(e, exponent);
    lost = lost || (!zero && std::fabs(e) < DBL_MIN);
  }
  if (lost) map.radius.assign(factor.size(), kMinSubnormal);
  UnitNetwork behind;
  behind.exponent = network.exponent;
  behind.nodes.push_back({.size = n});
  for (std::size_t k = node; k < network.nodes.size(); ++k) {
    behind.nodes.push_back(network.nodes[k]);
    UnitNode& made = behind.nodes.back();
    if (k == node) made.edges = {{0, std::move(map)}};
    made.depth = 0;
    for (UnitNode::Edge& edge : made.edges) {
      if (k > node) edge.from -= node - 1;
      made.depth = std::max(made.depth, behind.nodes[edge.from].depth + 1);
    }
  }
  return behind;
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "sdp/reduce.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <map>

#include "base/rounding.h"

namespace lipscope {
namespace {

using Flags = std::vector<bool>;

bool any(const Flags& flags) { return std::ranges::find(flags, true) != flags.end(); }

// Calls body(node, edge, row, column) for every entry of the network that may not be zero.
template <class Body>
void for_entries(const SdpNode& node, Body&& body) {
  for (const SdpNode::Edge& edge : node.edges) {
    for (Index i = 0; i < edge.map.rows; ++i) {
      edge.map.for_row(i, [&](Index j, std::size_t at) {
        if (edge.map.weights[at] != 0 || edge.map.radius_at(at) != 0)
          body(edge.from, static_cast<std::size_t>(i), static_cast<std::size_t>(j));
      });
    }
  }
}

EntryFlags alive(const SdpNetwork& network) {
  const std::vector<SdpNode>& nodes = network.nodes;
  EntryFlags moved, counts;
  for (const SdpNode& node : nodes) {
    moved.emplace_back(static_cast<std::size_t>(node.size), moved.empty());
    counts.emplace_back(static_cast<std::size_t>(node.size), false);
  }
  for (std::size_t k = 1; k < nodes.size(); ++k) {
    for_entries(nodes[k], [&](std::size_t from, std::size_t i, std::size_t j) {
      const bool flat =
          !nodes[k].slopes.empty() && nodes[k].slopes[i].lo == 0 && nodes[k].slopes[i].hi == 0;
      if (moved[from][j] && !flat) moved[k][i] = true;
    });
  }
  counts.back() = moved.back();
  for (std::size_t k = nodes.size(); k-- > 1;) {
    for_entries(nodes[k], [&](std::size_t from, std::size_t i, std::size_t j) {
      if (counts[k][i] && moved[from][j]) counts[from][j] = true;
    });
  }
  return counts;
}

void rescale(RowMatrix& map, int exponent) {
  bool lost = false;
  for (const double w : map.weights)
    lost = lost || (w != 0 && std::fabs(std::ldexp(w, exponent)) < DBL_MIN);
  for (const double r : map.radius) lost = lost || (r != 0 && std::ldexp(r, exponent) < DBL_MIN);
  if (lost && map.radius.empty()) map.radius.assign(map.weights.size(), 0);
  for (double& w : map.weights) w = std::ldexp(w, exponent);
  for (double& r : map.radius) {
    r = std::ldexp(r, exponent);
    if (lost) r = add_up(r, 2 * kMinSubnormal);
  }
}

}  // namespace

SdpNetwork restricted(const SdpNetwork& network, const EntryFlags& keep) {
  SdpNetwork made;
  made.exponent = network.exponent;
  std::vector<std::size_t> place(network.nodes.size());
  for (std::size_t k = 0; k < network.nodes.size(); ++k) {
    const SdpNode& old = network.nodes[k];
    if (!any(keep[k])) continue;
    SdpNode node{std::ranges::count(keep[k], true), {}, {}, {}, 0, old.origin};
    for (std::size_t i = 0; i < old.slopes.size(); ++i) {
      if (keep[k][i]) node.slopes.push_back(old.slopes[i]);
      if (keep[k][i] && !old.below.empty()) node.below.push_back(old.below[i]);
    }
    for (const SdpNode::Edge& edge : old.edges) {
      const Flags& from = keep[edge.from];
      if (!any(from)) continue;
      node.edges.push_back({place[edge.from], kept(edge.map, keep[k], from)});
      node.depth = std::max(node.depth, made.nodes[place[edge.from]].depth + 1);
    }
    place[k] = made.nodes.size();
    made.nodes.push_back(std::move(node));
  }
  return made;
}

void drop_dead_entries(SdpNetwork& network) {
  const EntryFlags keep = alive(network);
  if (!any(keep.back()) || !any(keep.front())) {
    network.nodes.clear();
    return;
  }
  const auto whole = [](const Flags& flags) {
    return std::ranges::find(flags, false) == flags.end();
  };
  if (!std::ranges::all_of(keep, whole)) network = restricted(network, keep);
}

std::vector<EntryFlags> components(const SdpNetwork& network) {
  std::vector<std::size_t> first;  // number of the first entry of each node
  std::size_t count = 0;
  for (const SdpNode& node : network.nodes) {
    first.push_back(count);
    count += static_cast<std::size_t>(node.size);
  }
  std::vector<std::size_t> leader(count);
  for (std::size_t i = 0; i < count; ++i) leader[i] = i;
  const auto find = [&](std::size_t i) {
    while (leader[i] != i) i = leader[i] = leader[leader[i]];
    return i;
  };
  for (std::size_t k = 0; k < network.nodes.size(); ++k) {
    for_entries(network.nodes[k], [&](std::size_t from, std::size_t i, std::size_t j) {
      leader[find(first[k] + i)] = find(first[from] + j);
    });
  }
  EntryFlags none;
  for (const SdpNode& node : network.nodes)
    none.emplace_back(static_cast<std::size_t>(node.size), false);
  std::vector<EntryFlags> parts;
  std::map<std::size_t, std::size_t> part_of;
  for (std::size_t k = 0; k < network.nodes.size(); ++k) {
    for (std::size_t i = 0; i < none[k].size(); ++i) {
      const auto [found, fresh] = part_of.try_emplace(find(first[k] + i), parts.size());
      if (fresh) parts.push_back(none);
      parts[found->second][k][i] = true;
    }
  }
  return parts;
}

void scale_nodes(SdpNetwork& network) {
  std::vector<int> exponents(network.nodes.size(), 0);
  for (std::size_t k = 1; k < network.nodes.size(); ++k) {
    int& own = exponents[k];
    own = -5000;
    for (const SdpNode::Edge& edge : network.nodes[k].edges) {
      double largest = 0;
      for (std::size_t at = 0; at < edge.map.weights.size(); ++at)
        largest = std::max(largest, std::fabs(edge.map.weights[at]) + edge.map.radius_at(at));
      int exponent = 0;
      if (largest > 0) std::frexp(largest, &exponent);
      if (largest > 0) own = std::max(own, exponent + exponents[edge.from]);
    }
    for (SdpNode::Edge& edge : network.nodes[k].edges)
      rescale(edge.map, exponents[edge.from] - own);
  }
  if (!network.nodes.empty()) network.exponent = exponents.back();
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "net/trim.h"

#include <algorithm>
#include <atomic>
#include <cfloat>
#include <cmath>
#include <map>

#include "base/parallel.h"
#include "base/rounding.h"

namespace lipscope {
namespace {

using Flags = std::vector<bool>;

bool any(const Flags& flags) { return std::ranges::find(flags, true) != flags.end(); }

// Calls body(column) for the entries of a row that may not be zero, until it says false.
template <class Body>
void for_entries(const RowMatrix& map, std::size_t row, Body&& body) {
  const auto i = static_cast<Index>(row);
  const std::size_t first = map.row_begin(i), last = map.row_end(i);
  for (std::size_t at = first; at < last; ++at) {
    if (map.weights[at] == 0 && map.radius_at(at) == 0) continue;
    if (!body(map.dense() ? at - first : static_cast<std::size_t>(map.columns[at]))) return;
  }
}

// Looks at no more rows than it takes: of a dense map, mostly one.
EntryFlags alive(const UnitNetwork& network) {
  const std::vector<UnitNode>& nodes = network.nodes;
  EntryFlags moved, counts;
  for (const UnitNode& node : nodes) {
    moved.emplace_back(static_cast<std::size_t>(node.size), moved.empty());
    counts.emplace_back(static_cast<std::size_t>(node.size), false);
  }
  for (std::size_t k = 1; k < nodes.size(); ++k) {
    for (std::size_t i = 0; i < moved[k].size(); ++i) {
      const bool flat =
          !nodes[k].slopes.empty() && nodes[k].slopes[i].lo == 0 && nodes[k].slopes[i].hi == 0;
      for (const UnitNode::Edge& edge : nodes[k].edges) {
        if (flat || moved[k][i]) break;
        for_entries(edge.map, i, [&](std::size_t j) {
          moved[k][i] = moved[edge.from][j];
          return !moved[k][i];
        });
      }
    }
  }
  counts.back() = moved.back();
  for (std::size_t k = nodes.size(); k-- > 1;) {
    for (const UnitNode::Edge& edge : nodes[k].edges) {
      const Flags& from_moves = moved[edge.from];
      Flags& from_counts = counts[edge.from];
      auto left = std::ranges::count(from_moves, true) - std::ranges::count(from_counts, true);
      for (std::size_t i = 0; i < moved[k].size() && left > 0; ++i) {
        if (!counts[k][i]) continue;
        for_entries(edge.map, i, [&](std::size_t j) {
          if (!from_moves[j] || from_counts[j]) return true;
          from_counts[j] = true;
          return --left > 0;
        });
      }
    }
  }
  return counts;
}

// Entries times 2^exponent; whether some of them became small enough to be rounded.
bool rescale_entries(std::vector<double>& entries, int exponent) {
  std::atomic<bool> lost = false;
  const bool normal = std::abs(exponent) <= 1000;
  const double factor = std::ldexp(1.0, normal ? exponent : 0);
  const auto scaled = [&](double e) { return normal ? e * factor : std::ldexp(e, exponent); };
  parallel_for(std::ssize(entries), Index{1} << 18, [&](Index from, Index to) {
    bool small = false;
    for (Index i = from; i < to; ++i) {
      double& e = entries[static_cast<std::size_t>(i)];
      const double before = e;
      e = scaled(e);
      small = small || (std::fabs(e) < DBL_MIN && before != 0);
    }
    if (small) lost = true;
  });
  return lost;
}

void rescale(RowMatrix& map, int exponent) {
  const bool lost_weights = rescale_entries(map.weights, exponent);
  const bool lost_radius = rescale_entries(map.radius, exponent);
  if (!lost_weights && !lost_radius) return;
  if (map.radius.empty()) map.radius.assign(map.weights.size(), 0);
  for (double& r : map.radius) r = add_up(r, 2 * kMinSubnormal);
}

// The largest entry in size with its radius.
double largest_entry(const RowMatrix& map) {
  const Index count = std::ssize(map.weights);
  constexpr Index kPiece = Index{1} << 18;
  std::vector<double> largest(static_cast<std::size_t>((count + kPiece - 1) / kPiece), 0);
  parallel_for(std::ssize(largest), 1, [&](Index from, Index to) {
    for (Index piece = from; piece < to; ++piece) {
      double& most = largest[static_cast<std::size_t>(piece)];
      const auto end = static_cast<std::size_t>(std::min(count, (piece + 1) * kPiece));
      for (auto at = static_cast<std::size_t>(piece * kPiece); at < end; ++at)
        most = std::max(most, std::fabs(map.weights[at]) + map.radius_at(at));
    }
  });
  return largest.empty() ? 0 : *std::ranges::max_element(largest);
}

}  // namespace

UnitNetwork restricted(const UnitNetwork& network, const EntryFlags& keep) {
  UnitNetwork made;
  made.exponent = network.exponent;
  std::vector<std::size_t> place(network.nodes.size());
  for (std::size_t k = 0; k < network.nodes.size(); ++k) {
    const UnitNode& old = network.nodes[k];
    if (!any(keep[k])) continue;
    UnitNode node{std::ranges::count(keep[k], true), {}, {}, {}, 0, old.origin};
    for (std::size_t i = 0; i < old.slopes.size(); ++i) {
      if (keep[k][i]) node.slopes.push_back(old.slopes[i]);
      if (keep[k][i] && !old.below.empty()) node.below.push_back(old.below[i]);
    }
    for (const UnitNode::Edge& edge : old.edges) {
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

void drop_dead_entries(UnitNetwork& network) {
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

std::vector<EntryFlags> components(const UnitNetwork& network) {
  std::vector<std::size_t> first;  // number of the first entry of each node
  std::size_t count = 0;
  for (const UnitNode& node : network.nodes) {
    first.push_back(count);
    count += static_cast<std::size_t>(node.size);
  }
  std::vector<std::size_t> leader(count);
  for (std::size_t i = 0; i < count; ++i) leader[i] = i;
  const auto find = [&](std::size_t i) {
    while (leader[i] != i) i = leader[i] = leader[leader[i]];
    return i;
  };
  std::size_t parts_left = count;
  for (std::size_t k = 0; k < network.nodes.size(); ++k) {
    const auto rows = static_cast<std::size_t>(network.nodes[k].size);
    for (const UnitNode::Edge& edge : network.nodes[k].edges) {
      for (std::size_t i = 0; i < rows && parts_left > 1; ++i) {
        for_entries(edge.map, i, [&](std::size_t j) {
          const std::size_t a = find(first[k] + i), b = find(first[edge.from] + j);
          if (a != b) --parts_left;
          leader[a] = b;
          return parts_left > 1;
        });
      }
    }
  }
  EntryFlags none;
  for (const UnitNode& node : network.nodes)
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

void scale_nodes(UnitNetwork& network) {
  std::vector<int> exponents(network.nodes.size(), 0);
  for (std::size_t k = 1; k < network.nodes.size(); ++k) {
    int& own = exponents[k];
    own = -5000;
    for (const UnitNode::Edge& edge : network.nodes[k].edges) {
      const double largest = largest_entry(edge.map);
      int exponent = 0;
      if (largest > 0) std::frexp(largest, &exponent);
      if (largest > 0) own = std::max(own, exponent + exponents[edge.from]);
    }
    for (UnitNode::Edge& edge : network.nodes[k].edges)
      rescale(edge.map, exponents[edge.from] - own);
  }
  if (!network.nodes.empty()) network.exponent = exponents.back();
}

void trim(UnitNetwork& network) {
  drop_dead_entries(network);
  scale_nodes(network);
}

}  // namespace lipscope

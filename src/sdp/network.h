// SPDX-License-Identifier: Apache-2.0
// A network as functions of single entries with affine maps between them: what the semidefinite
// bound [global-1] is about.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/interval.h"
#include "linalg/row_matrix.h"
#include "lipscope/graph.h"

namespace lipscope {

// Differences of values: dv_i = sum over edges of A dx_from, dx_i = slope dv_i entry by entry.
struct SdpNode {
  struct Edge {
    std::size_t from = 0;
    RowMatrix map;
  };
  Index size = 0;
  std::vector<Edge> edges;       // from earlier nodes, one each
  std::vector<Interval> slopes;  // one per entry; empty for the input and the output
  std::vector<Interval> bias;    // of the values; empty unless asked for
  int depth = 0;                 // edges of the longest path from the input
  const Node* origin = nullptr;  // the activation of the graph; null for other nodes
  // Slopes below zero of entries that have slope 1 above it (PReLU); empty for other nodes.
  std::vector<double> below = {};
};

// The first node is the input, the last one the output, whose size is in units of 2^exponent. Nodes
// are scaled by powers of two so that the entries of their maps are about 1. Entries that the input
// cannot move or that cannot move the output are left out; without any node the function is
// constant.
struct SdpNetwork {
  std::vector<SdpNode> nodes;
  int exponent = 0;

  [[nodiscard]] Index size() const;  // entries of all nodes
};

// From one value to another; without them the input and the output.
struct SdpPart {
  std::optional<ValueId> from = {}, to = {};
};

// As the graph has it: nothing is left out or scaled. With `biases` the values themselves are sums
// of maps and biases. Borrows the graph.
[[nodiscard]] std::optional<SdpNetwork> read_sdp_network(
    const Graph& graph, const std::function<const Box&(ValueId)>& box, Index most,
    std::string& reason, bool biases = false);
inline constexpr std::string_view kOneAffineLayer = "one affine layer: its norm says all";
// What is read for proofs, by those who find them and by those who check them.
inline constexpr Index kMostSdpEntries = 60'000;

// Nothing, and `reason` set, for a graph of another form, with an infinite slope or weight, or with
// more than `most` entries in all. `box` gives the box of a value.
[[nodiscard]] std::optional<SdpNetwork> as_sdp_network(
    const Graph& graph, const std::function<const Box&(ValueId)>& box, Index most,
    std::string& reason, const SdpPart& part = {});

}  // namespace lipscope

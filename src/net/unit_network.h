// SPDX-License-Identifier: Apache-2.0
// A network as functions of single entries, its units, with affine maps between them: the form that
// all bounds but those of whole graphs work on.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "base/interval.h"
#include "linalg/tensor/row_matrix.h"
#include "lipscope/graph.h"

namespace lipscope {

// Differences of values: dv_i = sum over edges of A dx_from, dx_i = slope dv_i entry by entry.
struct UnitNode {
  struct Edge {
    std::size_t from = 0;
    RowMatrix map;
  };
  // What relu(b - a) is a part of: a maximum over windows of the value a, by pairs in several
  // rounds, or that of two values.
  struct Lead {
    const Node* maximum = nullptr;
    int round = 0;
    ValueId a = {}, b = {};
  };
  Index size = 0;
  std::vector<Edge> edges;       // from earlier nodes, one each
  std::vector<Interval> slopes;  // one per entry; empty for the input and the output
  std::vector<Interval> bias;    // of the values; empty unless asked for
  int depth = 0;                 // edges of the longest path from the input
  const Node* origin = nullptr;  // the activation of the graph; null for other nodes
  // Slopes below zero of entries that have slope 1 above it (PReLU); empty for other nodes.
  std::vector<double> below = {};
  Lead lead = {};  // of units of a maximum
};

// The first node is the input, the last one the output, whose size is in units of 2^exponent. As it
// is read nothing is left out or scaled, and the exponent is 0. Without any node the function is
// constant.
struct UnitNetwork {
  std::vector<UnitNode> nodes;
  int exponent = 0;

  [[nodiscard]] Index size() const;  // entries of all nodes
};

// Gives the box of a value.
using BoxOf = std::function<const Box&(ValueId)>;

inline constexpr std::string_view kOneAffineLayer = "one affine layer: its norm says all";

struct ReadOptions {
  std::optional<ValueId> from = {}, to = {};  // without them the input and the output
  bool biases = false;                        // values, too, are sums of maps and biases
};
// Nothing for a graph of another form, with an infinite slope or weight on the boxes, or beyond
// what limits.h allows. Borrows the graph.
[[nodiscard]] Expected<UnitNetwork> read_unit_network(const Graph& graph, const BoxOf& box,
                                                      const ReadOptions& options = {});
// Why a node cannot be part of one.
[[nodiscard]] std::string neither_affine_nor_units(const Node& node);
// How many this process has read so far, or tried to: for tests.
[[nodiscard]] std::size_t networks_read();

// The network of smaller boxes, with the slopes there and without biases. Nothing where reading it
// anew makes it another one, or none: a node is linear there, or has no finite slope.
[[nodiscard]] std::optional<UnitNetwork> on_boxes(const UnitNetwork& network, const BoxOf& box);

}  // namespace lipscope

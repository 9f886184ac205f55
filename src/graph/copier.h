// SPDX-License-Identifier: Apache-2.0
// Copies of a graph, or of parts of it, in a graph being built.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lipscope/graph.h"

namespace lipscope {

// Borrows both. Every value that a copied node needs has to be there before the node.
class GraphCopier {
 public:
  GraphCopier(const Graph& graph, GraphBuilder& builder)
      : graph_(graph), builder_(builder), copies_(graph.values().size()) {}

  void constants();
  // An input of the new graph, of the type it had; all inputs of the graph.
  void input(ValueId id);
  void inputs();
  // What stands for a value.
  void set(ValueId id, ValueId copy) { copies_[id.index] = copy; }
  void set(const Node& node, std::span<const ValueId> outputs);
  void add(const Node& node);
  // All nodes that can be copied and whose results are not there.
  void add_rest();

  [[nodiscard]] bool has(ValueId id) const { return copies_[id.index].has_value(); }
  [[nodiscard]] ValueId operator[](ValueId id) const;
  [[nodiscard]] std::vector<ValueId> operator[](std::span<const ValueId> ids) const;
  [[nodiscard]] std::vector<std::string> output_names(const Node& node) const;

 private:
  const Graph& graph_;
  GraphBuilder& builder_;
  std::vector<std::optional<ValueId>> copies_;  // by value
};

// The function from some values to others, inputs and outputs in the order given. `from` has to
// separate `to` from the inputs of the graph (kInternal otherwise).
[[nodiscard]] Graph graph_part(const Graph& graph, std::span<const ValueId> from,
                               std::span<const ValueId> to);

}  // namespace lipscope

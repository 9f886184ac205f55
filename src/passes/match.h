// SPDX-License-Identifier: Apache-2.0
// Looking backwards through a graph for a known pattern.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lipscope/graph.h"

namespace lipscope {

// Borrows the graph. Values and nodes are looked at from the end of a pattern towards its start.
class Matcher {
 public:
  explicit Matcher(const Graph& graph);

  // The node that makes a value when it is of the given kind; null otherwise.
  [[nodiscard]] const Node* made_by(ValueId id, std::string_view op) const;
  [[nodiscard]] const Node* maker(ValueId id) const;
  // For a node of two inputs: the finite number that input `side` holds in every entry. Nothing
  // where it is known to rounding only, and nothing where it gives the other input another shape or
  // type: with a number in its place the node would be another function.
  [[nodiscard]] std::optional<double> scalar_at(const Node& node, std::size_t side) const;
  // Whether input `side` is, in the same sense, the root of this number, computed from it.
  [[nodiscard]] bool root_at(const Node& node, std::size_t side, double square) const;
  // For a node with such a number on either side: the other input and the number.
  [[nodiscard]] std::optional<std::pair<ValueId, double>> with_scalar(const Node& node) const;
  [[nodiscard]] const Value& value(ValueId id) const { return graph_.value(id); }
  [[nodiscard]] bool same_shape(ValueId a, ValueId b) const {
    return value(a).type.shape == value(b).type.shape;
  }

  // A product tree (Mul, and Div by a number) as its factors that are not numbers and the numbers
  // multiplied and divided by. `stop` is never taken apart, nor is what lies more than
  // kProductDepth nodes deep: no pattern has that many, and a tree that repeats its branches has
  // exponentially many factors.
  static constexpr int kProductDepth = 3;
  struct Product {
    std::vector<ValueId> factors;
    std::vector<double> multiply, divide;
  };
  [[nodiscard]] Product product(ValueId id, std::optional<ValueId> stop = {}) const;

 private:
  void collect(ValueId id, std::optional<ValueId> stop, int depth, Product& product) const;
  [[nodiscard]] bool keeps_type(const Node& node, std::size_t constant_side) const;

  const Graph& graph_;
  std::vector<const Node*> maker_;
};

// What takes the place of a node: an operator on earlier values.
struct Replacement {
  std::shared_ptr<const Op> op;
  std::vector<ValueId> inputs;
};
// The graph with every node replaced for which there is something; names stay. What has another
// type or shape than the node's output replaces nothing (rewrite_nodes).
[[nodiscard]] Graph replace_nodes(
    const Graph& graph,
    const std::function<std::optional<Replacement>(const Matcher&, const Node&)>& find);

}  // namespace lipscope

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
  // The number a constant holds in every entry; nothing where it is known to rounding only.
  [[nodiscard]] std::optional<double> scalar(ValueId id) const;
  // Whether a constant is the root of this number, computed from it.
  [[nodiscard]] bool is_root_of(ValueId id, double square) const;
  // For a node of two inputs, one of them such a constant: the other input and the number.
  [[nodiscard]] std::optional<std::pair<ValueId, double>> with_scalar(const Node& node) const;
  [[nodiscard]] const Value& value(ValueId id) const { return graph_.value(id); }
  [[nodiscard]] bool same_shape(ValueId a, ValueId b) const {
    return value(a).type.shape == value(b).type.shape;
  }

  // A product tree (Mul, and Div by a number) as its factors that are not numbers and the numbers
  // multiplied and divided by. `stop` is never taken apart.
  struct Product {
    std::vector<ValueId> factors;
    std::vector<double> multiply, divide;
  };
  [[nodiscard]] Product product(ValueId id, std::optional<ValueId> stop = {}) const;

 private:
  void collect(ValueId id, std::optional<ValueId> stop, Product& product) const;

  const Graph& graph_;
  std::vector<const Node*> maker_;
};

// What takes the place of a node: an operator on earlier values.
struct Replacement {
  std::shared_ptr<const Op> op;
  std::vector<ValueId> inputs;
};
// The graph with every node replaced for which there is something; names stay.
[[nodiscard]] Graph replace_nodes(
    const Graph& graph,
    const std::function<std::optional<Replacement>(const Matcher&, const Node&)>& find);

}  // namespace lipscope

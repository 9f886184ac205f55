// SPDX-License-Identifier: Apache-2.0
// Derivatives of a graph in interval arithmetic [attention-17].
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/interval.h"
#include "bounds/boxes.h"

namespace lipscope {

// Products of the Jacobian of one value with vectors, enclosed for all inputs in given boxes. Where
// a kink is inside, both one-sided derivatives are. Borrows the graph.
class DerivativeBoxes {
 public:
  using Row = std::vector<Interval>;
  using Rows = std::map<std::uint32_t, Row>;  // by value; none: zero

  DerivativeBoxes(const Graph& graph, std::span<const Box> inputs);

  // Why products cannot be formed; empty when they can. Asks no operator for numbers.
  [[nodiscard]] std::string unsupported(ValueId output) const;
  // Entries of matrices one product visits.
  [[nodiscard]] double work(ValueId output) const;

  // J d, for a direction over all floating inputs. Nothing when an operator does not tell.
  [[nodiscard]] std::optional<Row> push(std::span<const double> direction, ValueId output);
  // J'g, one entry for each of all floating inputs.
  [[nodiscard]] std::optional<Row> pull(std::span<const double> weights, ValueId output);
  // The same, and the derivative with respect to some of the values on the way (`taps`), each as if
  // it were an input: first all inputs, then a row per tap. May run concurrently after prepare().
  [[nodiscard]] std::optional<std::vector<Row>> pull_rows(std::span<const double> weights,
                                                          ValueId output,
                                                          std::span<const ValueId> taps);
  // One step of push(): from the rows of a node's inputs to those of its outputs. `careful`: entry
  // by entry in twice the precision where an operator has a matrix, not at the speed of products.
  bool push_node(const Node& node, Rows& rows, bool careful = false);
  // By value: whether the output depends on it.
  [[nodiscard]] std::vector<bool> reached(ValueId output) const;
  // Finds the boxes of all values up to the output.
  void prepare(ValueId output) { static_cast<void>(values_.at(output)); }

  [[nodiscard]] ValueBoxes& values() { return values_; }

 private:
  [[nodiscard]] std::vector<Box> boxes_of(const Node& node);
  bool pull_node(const Node& node, Rows& rows);

  const Graph& graph_;
  ValueBoxes values_;
  std::vector<bool> moves_;
};

}  // namespace lipscope

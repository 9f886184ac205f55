// SPDX-License-Identifier: Apache-2.0
// Interval propagation: a box for every value of a graph.
#pragma once

#include <optional>
#include <vector>

#include "base/interval.h"
#include "lipscope/query.h"

namespace lipscope {

// Any numbers.
[[nodiscard]] Box whole_line(const Shape& shape);

// Boxes of the floating graph inputs for a domain: the smallest that hold it.
[[nodiscard]] std::vector<Box> input_boxes(const Graph& graph, const Domain& domain);

// kPortable: computed ends are moved outward by more than the last digits in which machines differ,
// so that what is proved on these boxes holds on those that another machine computes.
enum class BoxMargin { kNone, kPortable };

// A box for every value that holds its real number for every input in the given boxes; all rounding
// included. Where an operator offers no range it is the whole line, and for integer values that
// depend on an input it is empty. Boxes are found when they are asked for, in the order of the
// graph. Borrows the graph.
class ValueBoxes {
 public:
  ValueBoxes(const Graph& graph, std::span<const Box> inputs, BoxMargin margin = BoxMargin::kNone);
  [[nodiscard]] const Box& at(ValueId id);
  // What is known of a value otherwise: entries that lie in its box and hold it, too. Values found
  // after this one use it.
  void shrink(ValueId id, std::span<const Interval> entries);
  [[nodiscard]] const Graph& graph() const { return graph_; }

 private:
  void propagate(const Node& node);

  const Graph& graph_;
  BoxMargin margin_;
  std::vector<Box> boxes_;
  std::vector<std::size_t> maker_;  // position of the node that makes a value, plus one
  std::size_t done_ = 0;            // nodes propagated through
};

// Entries of all floating inputs together.
[[nodiscard]] Index input_size(const Graph& graph);
// One vector split into the graph's inputs; integer inputs are zero.
[[nodiscard]] std::vector<Tensor> split_inputs(const Graph& graph, std::span<const double> all);

}  // namespace lipscope

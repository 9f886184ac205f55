// SPDX-License-Identifier: Apache-2.0
// Products with the Jacobian of a graph at a point, closer than intervals alone [attention-20].
#pragma once

#include <map>
#include <tuple>

#include "bounds/derivative_boxes.h"

namespace lipscope {

// Entries of intervals grow with the absolute values of weights. Here every value, and every row on
// its way through the graph, is also known as a middle and an l2 distance, which grows with the
// gains of the operators. Costs a gain per node. Borrows the graph.
class NearPoint {
 public:
  // The inputs are points or negligibly small boxes.
  NearPoint(const Graph& graph, std::span<const Box> inputs);

  // J d, for a direction over all floating inputs. Nothing when an operator does not tell.
  [[nodiscard]] std::optional<DerivativeBoxes::Row> push(std::span<const double> direction,
                                                         ValueId output);

 private:
  // All members are within an l2 distance of the middle.
  struct Near {
    std::vector<double> middle;
    double off = kInf;
  };
  using Row = DerivativeBoxes::Row;

  void find_value(const Node& node);
  [[nodiscard]] std::optional<Row> affine_value(const Node& node, std::vector<Box> points);
  bool push_node(const Node& node, DerivativeBoxes::Rows& rows, std::vector<Near>& near);
  [[nodiscard]] double gain(const Node& node, std::size_t k, std::size_t output);
  [[nodiscard]] std::vector<Box> inflated_boxes(const Node& node);

  const Graph& graph_;
  DerivativeBoxes derivative_;
  std::vector<Near> values_;
  std::map<std::tuple<const Node*, std::size_t, std::size_t>, double> gains_;
};

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Running a graph: values at points, and the action of the derivative there.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lipscope/graph.h"

namespace lipscope {

// One tensor per graph input, each holding `count` samples one after another (any shape with
// count * sample entries). Gives one tensor per output with the samples in its leading dimension
// (for count = 1: the output's own shape). The storage follows the precision.
[[nodiscard]] std::vector<Tensor> evaluate(const Graph& graph, std::span<const Tensor> inputs,
                                           Index count = 1,
                                           Precision precision = Precision::kFloat64);

// All values of a graph at `count` points, kept so that derivatives can be applied to vectors.
// Not thread-safe while being built; jvp and vjp are const and may run concurrently.
class Trace {
 public:
  Trace(const Graph& graph, std::span<const Tensor> inputs, Index count = 1);

  [[nodiscard]] const Tensor& value(ValueId id) const;
  // Directional derivatives of all floating outputs along one tangent per graph input (an empty
  // tensor means zero).
  [[nodiscard]] std::vector<Tensor> jvp(std::span<const Tensor> tangents) const;
  // Gradients with respect to all floating inputs for one weight tensor per output (empty: zero).
  [[nodiscard]] std::vector<Tensor> vjp(std::span<const Tensor> weights) const;

 private:
  [[nodiscard]] ConstView view(ValueId id) const;

  const Graph* graph_;
  Index count_;
  std::vector<Tensor> values_;  // by value index; constants stay in the graph
};

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Derivatives as graphs: for bounds of the gradient as a function of the input [local-14].
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lipscope/graph.h"
#include "ops/linear/multilinear.h"

namespace lipscope {

struct AdjointArgs {
  GraphBuilder& builder;
  std::span<const ValueId> inputs;  // of the node, in the graph being built
  ValueId output;
  ValueId gradient;  // with respect to the output
  std::size_t wrt = 0;
};

// For operators that are neither affine in all that moves nor functions of single entries:
// Op::graph_adjoint.
class GraphAdjoint {
 public:
  virtual ~GraphAdjoint() = default;
  // Adds what computes J'g, J being the derivative of output 0 by input `wrt`. Nothing when the
  // operator cannot tell.
  [[nodiscard]] virtual std::optional<ValueId> add_adjoint(const AdjointArgs& args) const = 0;
};

// A sum of products of values, added to a graph.
ValueId add_products(GraphBuilder& builder, Multilinear form, std::vector<ValueId> inputs);
// Entry by entry, of two values of one shape.
ValueId add_product(GraphBuilder& builder, ValueId a, ValueId b);

// Strides of a shape broadcast to `full` by numpy's rule, one for each dimension of that.
[[nodiscard]] std::vector<Index> broadcast_strides(const Shape& full, const Shape& shape);

}  // namespace lipscope

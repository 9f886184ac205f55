// SPDX-License-Identifier: Apache-2.0
// Dense layers and convolutions with constant weights, whatever node they come from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/graph.h"
#include "ops/windows/conv.h"

namespace lipscope {

// x W + b with W [k, n] and b [n], or the convolution of x with W and b [channels].
struct AffineLayer {
  ValueId x{}, weights{};
  std::optional<ValueId> bias;
  std::optional<ConvForm> conv;  // nothing: dense
  // A Pad between x and the convolution, whose form is then that on the padded image.
  std::shared_ptr<const Op> pad;
  // A dense layer on all entries of x as one row, whose result has this shape.
  std::optional<Shape> flat = {};
};

[[nodiscard]] inline const Shape& shape_of(const GraphBuilder& builder, ValueId id) {
  return builder.value(id).type.shape;
}

// Whether a node with these inputs (values of the builder) is such a layer, as far as its operator
// and constants tell.
[[nodiscard]] bool may_be_affine_layer(const GraphBuilder& builder, const Op& op,
                                       const std::vector<ValueId>& inputs);
// Weights that are transposed or scaled become constants of their own; so ask only when it is
// needed. Nothing where the node has another form after all.
[[nodiscard]] std::optional<AffineLayer> as_affine_layer(GraphBuilder& builder, const Op& op,
                                                         const std::vector<ValueId>& inputs);

// The value the layer gives.
ValueId add_layer(GraphBuilder& builder, const AffineLayer& layer, const std::string& name,
                  const std::string& output_name);

// Output channels: the last axis of a dense layer (all entries of a flat one), axis 1 of a
// convolution.
[[nodiscard]] Index layer_channels(const GraphBuilder& builder, const AffineLayer& layer);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// What becomes of an affine layer and an affine neighbour. Nothing where the two do not make one
// layer. Weights are combined as constants of the builder, which keeps track of their rounding.
#pragma once

#include "passes/affine_layer.h"

namespace lipscope {

using MaybeLayer = std::optional<AffineLayer>;

// second(first(x)): two dense layers; a convolution followed by one that adds no padding; anything
// small as matrices, also with a reshape between the two.
[[nodiscard]] MaybeLayer layer_after(GraphBuilder& builder, const AffineLayer& first,
                                     const AffineLayer& second, bool reshaped_between);
// layer(pad(x)) for a convolution: zeros become its own padding.
[[nodiscard]] MaybeLayer layer_of_padded(const GraphBuilder& builder, const AffineLayer& layer,
                                         ValueId x, const std::shared_ptr<const Op>& pad);
// layer(x op factor) with op Mul or Div.
[[nodiscard]] MaybeLayer layer_of_scaled(GraphBuilder& builder, const AffineLayer& layer, ValueId x,
                                         const std::string& op, ValueId factor);
// layer(x) op constant, or constant op layer(x) when `flipped`; op is Add, Sub, Mul or Div.
[[nodiscard]] MaybeLayer layer_with_constant(GraphBuilder& builder, const AffineLayer& layer,
                                             const std::string& op, ValueId constant, bool flipped);
// BatchNormalization of layer(x); `parameters` are scale, bias, mean, variance.
[[nodiscard]] MaybeLayer layer_normalised(GraphBuilder& builder, const AffineLayer& layer,
                                          std::vector<ValueId> parameters, double epsilon);
// layer(x) + x.
[[nodiscard]] MaybeLayer layer_plus_input(GraphBuilder& builder, const AffineLayer& layer);
// one(x) + two(x).
[[nodiscard]] MaybeLayer layer_plus_layer(GraphBuilder& builder, const AffineLayer& one,
                                          const AffineLayer& two);

}  // namespace lipscope

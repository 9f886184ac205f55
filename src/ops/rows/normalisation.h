// SPDX-License-Identifier: Apache-2.0
// Rows brought to mean 0 and variance 1, then scaled and shifted.
#pragma once

#include <memory>

#include "lipscope/op.h"

namespace lipscope {

// LayerNormalization over dimensions axis, axis+1, ... The operator's inputs are x, then scale and
// bias where they are there, each with one entry per normalised entry (shape x.shape[axis:]).
[[nodiscard]] std::shared_ptr<const Op> make_layer_norm(ValueType x, Index axis, double epsilon,
                                                        bool scale, bool bias);
// x / sqrt(mean of squares + epsilon) over the same dimensions.
[[nodiscard]] std::shared_ptr<const Op> make_rms_norm(ValueType x, Index axis, double epsilon);

}  // namespace lipscope

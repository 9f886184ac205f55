// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "linalg/conv/padded_conv_norm.h"
#include "lipscope/op.h"

namespace lipscope {

// A Pad and the Conv behind it as one operator with inputs image, weights and perhaps bias: the
// gain of the two together is often far below the product of their gains. `map` describes the two.
[[nodiscard]] std::shared_ptr<const Op> make_padded_conv(std::shared_ptr<const Op> pad,
                                                         std::shared_ptr<const Op> conv,
                                                         ValueType image, PaddedConv map);

}  // namespace lipscope

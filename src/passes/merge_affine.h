// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lipscope/graph.h"

namespace lipscope {

// Neighbouring affine nodes as one dense layer or one convolution: the norm of a product is at most
// the product of the norms, and often far below it. The function stays the same over the reals:
// what rounding does to merged weights goes into their enclosures. [composition-5]
[[nodiscard]] Graph merge_affine(const Graph& graph);

}  // namespace lipscope

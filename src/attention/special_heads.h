// SPDX-License-Identifier: Apache-2.0
// Heads of L2 attention and of scaled cosine attention, which have constants on the whole space.
#pragma once

#include <vector>

#include "attention/find.h"
#include "attention/head.h"

namespace lipscope {

// By head: bounds of the map from a value, of which queries, keys and values are affine functions
// up to normalisation, to what is mixed: ours and those of the literature [attention-13] to
// [attention-16]. Empty unless the block is exactly what the theorems are about.
[[nodiscard]] std::vector<std::vector<AttentionBound>> special_bounds(const Graph& graph,
                                                                      const AttentionBlock& block,
                                                                      ValueId source);

}  // namespace lipscope

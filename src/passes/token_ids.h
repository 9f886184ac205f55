// SPDX-License-Identifier: Apache-2.0
// Models of token ids: their constant is taken from the embedding on.
#pragma once

#include "lipscope/graph.h"

namespace lipscope {

// The first Gather that looks up ids given to the model: integer inputs and what is computed from
// them, or floating inputs that are cast to integers at once. Null where a floating input moves
// `end` without becoming an integer on the way, and where there is no such Gather: indices that
// are computed from floating numbers (a codebook) are no ids.
[[nodiscard]] const Node* embedding_of_ids(const Graph& graph, ValueId end);

}  // namespace lipscope

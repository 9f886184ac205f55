// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "passes/affine_layer.h"

namespace lipscope {

// The layer as one matrix on all entries of its input; `flat` is the shape of its result. Nothing
// for a layer on several samples or rows, or whose matrix would have too many entries.
[[nodiscard]] std::optional<AffineLayer> as_flat(GraphBuilder& builder, const AffineLayer& layer);

// Entries of the input and of the result of the layer's matrix; nothing where as_flat gives
// nothing.
struct FlatSize {
  Index inputs = 0, outputs = 0;
};
[[nodiscard]] std::optional<FlatSize> flat_size(const GraphBuilder& builder,
                                                const AffineLayer& layer);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/facets/wide_map.h"
#include "ops/linear/multilinear.h"

namespace lipscope {

// For terms of one or two inputs.
[[nodiscard]] bool push_wide_products(const Multilinear& form,
                                      std::span<const WideTensor* const> in, WideTensor& out);

}  // namespace lipscope

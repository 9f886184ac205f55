// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "lipscope/tensor.h"

namespace lipscope {

// y += sum over k < count of weights[k] * row columns[k] of x, rows of `width` numbers.
void add_weighted_rows(const double* weights, const std::int32_t* columns, std::size_t count,
                       const double* x, Index width, double* y);

}  // namespace lipscope

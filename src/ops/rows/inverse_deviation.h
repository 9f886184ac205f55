// SPDX-License-Identifier: Apache-2.0
// What standardised rows are multiplied by, as an operator of its own.
#pragma once

#include <memory>

#include "lipscope/op.h"
#include "ops/rows/row_bounds.h"

namespace lipscope {

// x, read as rows of a length, to one number for each: 1 / divisor.
[[nodiscard]] std::shared_ptr<const Op> make_inverse_deviation(ElementType type, Index rows,
                                                               Index length,
                                                               const Divisor& divisor);

}  // namespace lipscope

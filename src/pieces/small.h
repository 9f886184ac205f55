// SPDX-License-Identifier: Apache-2.0
// Words that all files of this folder use.
#pragma once

#include <cstddef>

#include "base/rounding.h"
#include "lipscope/tensor.h"

namespace lipscope {

inline std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// More than underflow can take from a sum of products of numbers up to `size`.
inline double underflow_up(double size) { return mul_up(0x1p-1000, add_up(1, size)); }

}  // namespace lipscope

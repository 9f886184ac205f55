// SPDX-License-Identifier: Apache-2.0
// Words that all files of this folder use.
#pragma once

#include <cstddef>

#include "base/rounding.h"
#include "lipscope/tensor.h"

namespace lipscope {

inline std::size_t to_size(Index i) { return static_cast<std::size_t>(i); }

// More than underflow can take from a sum of products of numbers up to `size`.
inline double underflow_up(double size) { return mul_up(0x1p-1000, add_up(1, size)); }
// The same where the sums are coefficients of a linear function: they may be off by less than
// 2^-1040 each, and that times what they are coefficients of. `factors`: the sizes of all of these.
inline double underflow_up(double size, double factors) {
  return add_up(underflow_up(size), mul_up(0x1p-1040, factors));
}

}  // namespace lipscope

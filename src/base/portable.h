// SPDX-License-Identifier: Apache-2.0
// Claims that hold on every machine. A number that was computed with a BLAS, with vector
// instructions or with the functions of a C library differs in its last digits from one processor
// to the next; a claim made of it has to leave room for that.
#pragma once

#include "base/rounding_basic.h"

namespace lipscope {

// Numbers of few bits are sums without rounding, or no sums at all: the same everywhere.
[[nodiscard]] inline bool has_few_bits(double x) {
  return static_cast<double>(static_cast<float>(x)) == x;
}

// For an upper bound from sums, products, roots and powers of numbers of one sign, or from bounds
// that are themselves claims.
[[nodiscard]] inline double portable_claim(double upper) {
  return has_few_bits(upper) ? upper : mul_up(upper, 1 + 0x1p-36);
}

}  // namespace lipscope

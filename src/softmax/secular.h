// SPDX-License-Identifier: Apache-2.0
// The largest eigenvalue of diag(s) - s s', s = w / sum(w), without forming the matrix.
#pragma once

#include <span>

#include "base/interval.h"

namespace lipscope {

// Encloses the eigenvalue for the weights (top, tail...): exact positive doubles, each at least
// 2^-1000 and none above `top`, which is at most 1; any common factor drops out. Relative width
// about 2e-15 for 64 weights, 1e-14 for 10^7; 0 for an empty tail. A few passes over the tail, no
// memory [softmax-6].
[[nodiscard]] Interval top_eigenvalue(double top, std::span<const double> tail);

// The sum of positive numbers: relative error at most gamma_up(depth) in any case [rounding-9].
struct PositiveSum {
  double value = 0;
  std::size_t depth = 0;  // additions any one term passes through
  [[nodiscard]] double up() const { return mul_up(value, add_up(1, 2 * gamma_up(depth))); }
  [[nodiscard]] double down() const { return mul_down(value, sub_down(1, 2 * gamma_up(depth))); }
};
[[nodiscard]] PositiveSum sum_positive(std::span<const double> x);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// What rounding to nearest does in a floating-point format [robustness-6].
#pragma once

#include "base/interval.h"
#include "base/rounding.h"
#include "lipscope/tensor.h"

namespace lipscope {

struct NumberFormat {
  ElementType type = ElementType::kFloat32;
  double unit = 0;  // relative error of a rounded normal number, at most
  double tiny = 0;  // error of a rounded smaller number, at most: half of the least positive one
  double most = 0;  // the largest number

  // Throws kUnsupported unless it is float32, float16 or bfloat16.
  [[nodiscard]] static NumberFormat of(ElementType type);

  [[nodiscard]] double error_of(double size) const { return add_up(mul_up(unit, size), tiny); }
  // Holds all numbers of x, rounded or not.
  [[nodiscard]] Interval rounded(const Interval& x) const {
    const double below = error_of(x.lo < 0 ? -x.lo : x.lo), above = error_of(magnitude(x));
    return {sub_down(x.lo, below), add_up(x.hi, above)};
  }
};

}  // namespace lipscope

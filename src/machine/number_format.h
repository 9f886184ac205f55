// SPDX-License-Identifier: Apache-2.0
// Floating-point formats, rounded to nearest [robustness-6].
#pragma once

#include "lipscope/tensor.h"

namespace lipscope {

struct NumberFormat {
  ElementType type = ElementType::kFloat32;
  double unit = 0;    // relative error of a rounded normal number, at most
  double tiny = 0;    // error of a rounded smaller number, at most: half of the least positive one
  double normal = 0;  // the least positive normal number
  double most = 0;    // the largest number

  // Throws kUnsupported unless it is float32, float16 or bfloat16.
  [[nodiscard]] static NumberFormat of(ElementType type);

  // Whether every number of the other format is one of this.
  [[nodiscard]] bool holds(const NumberFormat& other) const {
    return unit <= other.unit && tiny <= other.tiny && most >= other.most;
  }
};

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// The largest gradient of a piecewise linear network on a box as a program with integer variables
// [local-12]: 0 or 1 for the side of each unstable unit and for the sign of each entry of the
// gradient.
#pragma once

#include <optional>

#include "estimate/integer_program.h"
#include "pieces/bounded_region.h"
#include "pieces/row_bound.h"

namespace lipscope {

// Of one output: the sum of the absolute entries of its gradient, or one entry times a sign.
struct GradientTask {
  Index row = 0;
  struct Entry {
    Index input = 0;
    double sign = 1;
  };
  std::optional<Entry> entry = {};
  double limit = 0;  // an upper bound, by linear bounds
};

// Everything there is to maximise for the largest gradient of all outputs, largest limits first.
[[nodiscard]] std::vector<GradientTask> gradient_tasks(const LayeredNet& net, const Slopes& slopes,
                                                       GradientNorm norm);

struct GradientProgram {
  IntegerProgram program;  // the first columns are the inputs
  struct Side {
    UnitId unit;
    int column;  // 1 where the value before the unit is positive
  };
  std::vector<Side> sides;  // of all unstable units
};
// The region is a box.
[[nodiscard]] GradientProgram gradient_program(const LayeredNet& net, const BoundedRegion& region,
                                               const Slopes& slopes, const GradientTask& task);

}  // namespace lipscope

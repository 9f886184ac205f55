// SPDX-License-Identifier: Apache-2.0
// Affine functions below and above a standardised row in a box, times a scale, plus a bias
// [normalisation-11].
#pragma once

#include <span>

#include "ops/rows/row_bounds.h"
#include "ops/rows/row_forms.h"

namespace lipscope {

// What is done to the standardised entries: fixed numbers in these intervals.
struct ScaleAndBias {
  std::vector<Interval> scale, bias;
};

// Offsets are infinite where the row has no bounds.
[[nodiscard]] RowRelaxation relax_standardised(const Group& x, const Divisor& divisor,
                                               const ScaleAndBias& then);

// Of 1 / D alone: offset and weights of a function below and one above.
struct InverseForms {
  double low = 0, high = 0;
  std::vector<double> below, above;
};
[[nodiscard]] InverseForms relax_inverse_deviation(const Group& x, const Divisor& divisor);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Affine functions below and above the entries of a row in a box, as operators on rows make them.
#pragma once

#include <span>
#include <vector>

#include "base/interval.h"
#include "ops/rows/reduce_bounds.h"

namespace lipscope {

// For each entry i of a row of n: offsets[i] + sum over j of weights[i n + j] x_j.
struct RowForms {
  std::vector<double> weights, offsets;
};
struct RowRelaxation {
  RowForms lower, upper;
};

// The middle of a box, and how far from it the points of the box are in each entry.
struct RowMiddle {
  std::vector<double> at, reach;
  explicit RowMiddle(const Group& x);
};

// height + gradient . (x - middle), the coefficients being fixed numbers in the intervals.
struct RowPlane {
  Interval height;
  std::vector<Interval> gradient;
};

// The forms of one side, written one by one.
class RowFormWriter {
 public:
  // side 1: the functions are above what they bound, -1: below. Borrows the middle.
  RowFormWriter(const RowMiddle& middle, double side);

  // Coefficients are rounded to doubles; what that may cost on the box goes into the offset. False,
  // and nothing written, where the numbers are too large.
  bool plane(std::size_t i, const RowPlane& p);
  void constant(std::size_t i, double value);

  [[nodiscard]] RowForms forms() && { return std::move(forms_); }

 private:
  const RowMiddle& middle_;
  double side_;
  RowForms forms_;
};

[[nodiscard]] bool is_bounded_group(const Group& x);

}  // namespace lipscope

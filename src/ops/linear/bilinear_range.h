// SPDX-License-Identifier: Apache-2.0
// Interval evaluation of bilinear maps (matrix products, convolutions, weighted sums) by a few
// runs of their floating-point code on midpoints and radii [linear-1].
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lipscope/norm.h"

namespace lipscope {

struct Bounds {
  std::vector<double> lower, upper;
};
struct BoundsView {
  std::span<const double> lower, upper;
  BoundsView(std::span<const double> lo, std::span<const double> hi) : lower(lo), upper(hi) {}
  explicit BoundsView(const Bounds& b) : lower(b.lower), upper(b.upper) {}
  explicit BoundsView(const Box& box) : lower(box.lower.doubles()), upper(box.upper.doubles()) {}
};

// Output entry i is the sum of a[j] * b[k] over some set of pairs (j, k), each with coefficient 1.
struct BilinearMap {
  // Writes all of `out`, in plain floating point, summing in any order.
  std::function<void(const double* a, const double* b, double* out)> apply;
  Index size = 0;               // entries of the output
  Index roundings = 0;          // that a term goes through: at most the number of terms of an entry
  bool exact_products = false;  // b is made of ones
};

// Ends may be infinite ("any finite value"); never NaN. A single term of constants costs nothing
// but its rounding, an entry without terms is exactly 0.
[[nodiscard]] Bounds bilinear_range(const BilinearMap& map, const BoundsView& a,
                                    const BoundsView& b);

}  // namespace lipscope

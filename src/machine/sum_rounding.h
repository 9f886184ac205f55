// SPDX-License-Identifier: Apache-2.0
// The rounding of sums whose order is not known [robustness-7].
#pragma once

#include <vector>

namespace lipscope {

// What is known of a sum of numbers of a format.
struct SumTerms {
  std::vector<double> sizes = {};  // of the terms that are not zero, at most
  double plus = 0, minus = 0;      // positive and negative parts together, at most
  double flushed = 0;              // what partial sums taken for zero lose together, at most

  void clear();
};

// How far the sum can be off when its terms are added in any order and every partial sum is rounded
// with relative error `unit`, or taken for zero. Infinity where no bound is known.
[[nodiscard]] double sum_rounding(const SumTerms& terms, double unit);

}  // namespace lipscope

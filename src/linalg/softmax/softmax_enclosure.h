// SPDX-License-Identifier: Apache-2.0
// Proved intervals around softmax and log-sum-exp of a row of doubles, for every row: any spread,
// any length, ties, infinite entries. lambda, infinities and NaN as in softmax.h.
//
//   const SoftmaxEnclosure s = softmax_enclosure(logits, 2.0);
//   s.shares[3].lo <= exact softmax of entry 3 <= s.shares[3].hi
//
// Widths: shares relative 2.2e-15 or less in vector code, 3.6e-15 in plain code, plus 2^-1019
// absolute; log-sum-exp 3.4e-15 times the largest of 1, |lambda x_i| and itself. Theory:
// docs/theory/softmax-kernel.md [softmax-kernel-7]. Assumes [rounding-7] for log, and for exp in
// plain code. Thread-safe.
#pragma once

#include <span>
#include <vector>

#include "base/rounding_basic.h"

namespace lipscope {

struct SoftmaxEnclosure {
  std::vector<Interval> shares;
  Interval log_sum_exp;  // both ends +inf or both -inf where softmax.h says so
};

[[nodiscard]] SoftmaxEnclosure softmax_enclosure(std::span<const double> row, double lambda = 1);
[[nodiscard]] Interval log_sum_exp_enclosure(std::span<const double> row, double lambda = 1);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Softmax of lambda x for every x in a box: what each probability and each linear functional can
// be, and how steep the function gets. Theory: docs/theory/softmax.md, proved, rounded outward.
#pragma once

#include <span>
#include <vector>

#include "base/interval.h"
#include "lipscope/norm.h"

namespace lipscope {

// Every x with lower <= x <= upper; ends may be infinite ("unbounded but finite").
struct LogitBox {
  std::span<const double> lower, upper;
  double lambda = 1;  // finite, not 0
};

// Exact range of each probability, up to rounding, and of its complement 1 - s_i, which has no
// cancellation [softmax-11].
struct ShareRange {
  Interval share, rest;
};
[[nodiscard]] std::vector<ShareRange> softmax_ranges(const LogitBox& box);

// Exact range of sum v_i s_i over the box, up to rounding; v finite [softmax-12]. A few passes.
[[nodiscard]] Interval softmax_functional_range(const LogitBox& box, std::span<const double> v);

// Upper bound of the p -> q norm of the Jacobian on the box, hence a Lipschitz constant of softmax
// there; exact up to rounding for 1 -> 1, inf -> inf and 1 -> inf [softmax-13].
[[nodiscard]] double softmax_box_norm_up(const LogitBox& box, const NormPair& norms);

}  // namespace lipscope

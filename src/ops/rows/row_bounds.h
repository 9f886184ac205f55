// SPDX-License-Identifier: Apache-2.0
// Ranges and norms of Jacobians of functions of one row in a box: softmax and rows divided by
// something computed from themselves. Theory: docs/theory/normalisation.md.
#pragma once

#include <vector>

#include "ops/rows/reduce_bounds.h"

namespace lipscope {

// For each entry i the range of T_i, the sum over j != i of exp(x_j - x_i) [normalisation-3].
// Softmax is 1 / (1 + T).
class SoftmaxTails {
 public:
  explicit SoftmaxTails(const Group& x);
  [[nodiscard]] std::size_t size() const noexcept { return tail_.size(); }
  // Of softmax, log(softmax) and softmax (1 - softmax), the last without cancellation.
  [[nodiscard]] Interval share(std::size_t i) const;
  [[nodiscard]] Interval log_share(std::size_t i) const;
  [[nodiscard]] double spread_up(std::size_t i) const;
  // Upper bound of 1 - softmax.
  [[nodiscard]] double rest_up(std::size_t i) const;

 private:
  std::vector<Interval> tail_, log_tail_;
};

// Norms of all Jacobians on the box, for rows of two entries or more.
[[nodiscard]] CornerNorms log_softmax_norms(const SoftmaxTails& tails);  // [normalisation-5]

// Variance (divided by the length) of the points of a box [normalisation-8].
[[nodiscard]] Interval variance_range(const Group& x);
// x_i minus the mean of the row.
[[nodiscard]] std::vector<Interval> centred_range(const Group& x);

// What a row is divided by: sqrt(variance + epsilon), or deviation + epsilon where `outside`. Rows
// that are not centred: sqrt(mean of squares + epsilon).
struct Divisor {
  double epsilon = 0;  // not negative
  bool outside = false;
  bool centred = true;
  [[nodiscard]] Interval range(const Interval& variance) const;
  // Of the variance or the mean of squares of the points of a box.
  [[nodiscard]] Interval spread(const Group& x) const;
};
// The row, centred or not, and divided [normalisation-7], [normalisation-10]. Where the divisor may
// be zero there may be no value: the whole line.
[[nodiscard]] std::vector<Interval> standardised_range(const Group& x, const Divisor& divisor);
// Norms of the Jacobians of the standardised row times `scale` entry by entry (absolute values).
[[nodiscard]] CornerNorms standardised_norms(const Group& x, const Divisor& divisor,
                                             std::span<const double> scale);

// x / |x|_1 or x / |x|_2 [normalisation-9].
[[nodiscard]] std::vector<Interval> unit_row_range(const Group& x, bool one);
[[nodiscard]] CornerNorms unit_row_norms(const Group& x, bool one);

}  // namespace lipscope

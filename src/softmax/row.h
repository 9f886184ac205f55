// SPDX-License-Identifier: Apache-2.0
// One row of logits and its softmax in proved arithmetic.
//
//   const SoftmaxRow row(logits, 2.0);                 // softmax of 2 x
//   const NormBracket b = SoftmaxNorm(parse_norms("2"))(row);
//
// The row is kept as weights: doubles w_i with softmax(lambda x)_i close to w_i / sum(w). Every
// pair product s_i s_j is within the factor spread() of its value for the weights, so norms of
// the Jacobian are, too [softmax-4]; entries whose weight is below 2^-990 of the largest are left
// out and `lost()` bounds what they add [softmax-5].
#pragma once

#include <span>
#include <vector>

#include "base/interval.h"
#include "lipscope/tensor.h"

namespace lipscope {

class SoftmaxRow {
 public:
  // Entries -inf are masked: they are no part of the row. NaN and +inf, lambda 0 or not finite:
  // kUsage, naming the entry.
  SoftmaxRow(std::span<const double> logits, double lambda);
  // From probabilities, or any numbers in their proportion, taken as exact. Zeros are dropped;
  // negative or not finite: kUsage.
  [[nodiscard]] static SoftmaxRow from_weights(std::span<const double> weights);

  // Entries that are not masked, those left out as too small included.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] double lambda() const noexcept { return lambda_; }
  // The largest weight is first and at most 1; the order of the others is that of the row but for
  // one exchange.
  [[nodiscard]] std::span<const double> weights() const noexcept { return weights_; }
  [[nodiscard]] double top() const noexcept { return weights_[0]; }
  [[nodiscard]] std::span<const double> tail() const noexcept {
    return std::span(weights_).subspan(1);
  }
  // Place in the row given of each weight.
  [[nodiscard]] std::span<const Index> places() const noexcept { return places_; }
  // Upper bounds: a factor, at least 1, and a share of the whole.
  [[nodiscard]] double spread() const noexcept { return spread_; }
  [[nodiscard]] double lost() const noexcept { return lost_; }
  // Sum of the weights kept, and of all but the largest.
  [[nodiscard]] Interval total() const noexcept { return total_; }
  [[nodiscard]] Interval rest() const noexcept { return rest_; }

  // Of the true softmax. k counts weights.
  [[nodiscard]] Interval probability(std::size_t k) const;
  // The largest probability, and one minus it without cancellation.
  [[nodiscard]] Interval top_share() const;
  [[nodiscard]] Interval rest_share() const;
  // lambda^-1 log sum exp(lambda x), for a row of logits that are not all masked.
  [[nodiscard]] Interval log_sum_exp() const;

 private:
  SoftmaxRow() = default;
  void keep(double weight, Index place);
  void finish();

  std::vector<double> weights_;
  std::vector<Index> places_;
  std::size_t size_ = 0;
  double lambda_ = 1, spread_ = 1, lost_ = 0, reference_ = 0;
  Interval total_, rest_;
};

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// A head of self-attention on a ball of tokens around a point.
#pragma once

#include <vector>

#include "attention/head.h"

namespace lipscope {

// All tokens together within the radius (Frobenius), or each of them.
enum class TokenNorm { kFrobenius, kTokenMax };

class HeadBall {
 public:
  // Borrows the point.
  HeadBall(const HeadAt& at, double radius, TokenNorm norm);

  // Scores up to a number per row, and shares, anywhere in the ball [attention-7].
  [[nodiscard]] const IntervalMatrix& scores() const { return scores_; }
  [[nodiscard]] const IntervalMatrix& shares() const { return shares_; }

  // Upper bounds of the Lipschitz constant on the ball in its norm, proved.
  [[nodiscard]] double covariance_bound() const;  // [attention-8]
  // Upper bound of the second derivative in the ball [attention-9].
  [[nodiscard]] double curvature() const;
  // [attention-6]: from the lengths of the tokens alone.
  [[nodiscard]] double length_bound() const;

 private:
  void find_scores();
  void find_spreads();
  // Of a column of shares: the largest of sum_i terms_i P_ij over j.
  [[nodiscard]] double largest_column(const std::vector<double>& terms) const;

  const HeadAt& at_;
  double radius_;
  TokenNorm norm_;
  double value_norm_, score_norm_;  // of V and of Q K'
  IntervalMatrix scores_, shares_;
  // By row: the largest share; its square root, or 1; how far scores spread when the query's token
  // moves; how far values spread, at most and in one direction; the rate of keys.
  std::vector<double> top_, reach_, score_spread_, value_spread_, value_distance_, key_rate_;
};

// |J| at the centre plus the integral of the curvature along a radius, in shells [attention-9].
[[nodiscard]] double taylor_bound(const HeadAt& at, double norm_at_centre, double radius,
                                  TokenNorm norm, int shells = 4);

// On all tokens of length at most `length` [attention-6].
[[nodiscard]] double length_bound(const HeadWeights& head, double length, TokenNorm norm);

}  // namespace lipscope

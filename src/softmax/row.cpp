// SPDX-License-Identifier: Apache-2.0
#include "softmax/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lipscope/error.h"
#include "softmax/secular.h"

namespace lipscope {
namespace {

// Relative error of a weight, and what it does to the product of two probabilities: the largest
// quotient ((1 + e) / (1 - e))^2 is below 1 + 25 u for e = 6 u.
constexpr double kWeightError = 6 * kUnitRoundoff;
constexpr double kSpread = 1 + 26 * kUnitRoundoff;
// Exponents below this are left out; e^-690 > 2^-996.
constexpr double kSmallest = -690;

struct Weight {
  double value = 0;  // within kWeightError, relatively
  double lost = 0;   // an upper bound instead, where the value is too small to be kept
};

// exp(lambda (x - reference)), which is at most 1 [softmax-4]. The difference and the product are
// kept with their rounding errors, so the exponent is known to about 2^-104 of itself.
Weight weight_of(double x, double reference, double lambda) {
  const double difference = x - reference;
  if (difference == 0) return {1, 0};
  if (!std::isfinite(difference)) return weight_of(0.25 * x, 0.25 * reference, 4 * lambda);
  const double exponent = lambda * difference;
  if (!(exponent >= kSmallest)) {
    return {0, exponent == -kInf ? kMinSubnormal : exp_up(exponent * (1 - 0x1p-40))};
  }
  const double error = rounding_detail::add_error(x, -reference, difference);
  const double low = std::fma(lambda, difference, -exponent) + lambda * error;
  const double y = std::exp(exponent);
  return {std::min(1.0, y + y * low), 0};
}

}  // namespace

SoftmaxRow::SoftmaxRow(std::span<const double> logits, double lambda) : lambda_(lambda) {
  if (!std::isfinite(lambda) || lambda == 0) {
    throw Error(ErrorCode::kUsage, fmt::format("lambda must be finite and not 0, not {}", lambda));
  }
  reference_ = lambda > 0 ? -kInf : kInf;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double x = logits[i];
    if (x == -kInf) continue;
    if (!std::isfinite(x)) throw Error(ErrorCode::kUsage, fmt::format("entry {} is {}", i, x));
    reference_ = lambda > 0 ? std::max(reference_, x) : std::min(reference_, x);
  }
  weights_.reserve(logits.size());
  places_.reserve(logits.size());
  bool exact = true;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == -kInf) continue;
    const Weight w = weight_of(logits[i], reference_, lambda);
    ++size_;
    if (w.value > 0) {
      keep(w.value, static_cast<Index>(i));
      exact = exact && logits[i] == reference_;
    } else {
      lost_ = add_up(lost_, w.lost);
    }
  }
  if (!exact) spread_ = kSpread;
  finish();
}

SoftmaxRow SoftmaxRow::from_weights(std::span<const double> weights) {
  SoftmaxRow row;
  double largest = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || weights[i] == kInf)
      throw Error(ErrorCode::kUsage, fmt::format("weight {} is {}", i, weights[i]));
    largest = std::max(largest, weights[i]);
  }
  if (largest == 0) throw Error(ErrorCode::kUsage, "no weight is positive");
  const int exponent = std::ilogb(largest) + 1;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    ++row.size_;
    const double w = std::ldexp(weights[i], -exponent);  // exact where it is kept
    if (w >= 0x1p-996) {
      row.keep(w, static_cast<Index>(i));
    } else {
      row.lost_ = add_up(row.lost_, 0x1p-995);
    }
  }
  row.finish();
  return row;
}

void SoftmaxRow::keep(double weight, Index place) {
  weights_.push_back(weight);
  places_.push_back(place);
  if (weight > weights_[0]) {
    std::swap(weights_[0], weights_.back());
    std::swap(places_[0], places_.back());
  }
}

void SoftmaxRow::finish() {
  if (weights_.empty()) return;
  const PositiveSum rest = sum_positive(tail());
  rest_ = {rest.down(), rest.up()};
  total_ = point(top()) + rest_;
}

// With true weights within (1 +- e) of ours, s = w / (w + others) is monotone in both.
Interval SoftmaxRow::probability(std::size_t k) const {
  if (k == 0) return top_share();
  const Interval share = point(weights_[k]) / total_;
  return {div_down(div_down(share.lo, spread_), add_up(1, 2 * lost_)),
          min_nan(1, mul_up(share.hi, spread_))};
}

Interval SoftmaxRow::top_share() const {
  if (size_ < 2) return point(1);
  const Interval share = point(top()) / total_, rest = rest_share();
  return {
      max_nan(div_down(div_down(share.lo, spread_), add_up(1, 2 * lost_)), sub_down(1, rest.hi)),
      min_nan(mul_up(share.hi, spread_), sub_up(1, rest.lo))};
}

Interval SoftmaxRow::rest_share() const {
  if (size_ < 2) return point(0);
  const Interval share = rest_ / total_;
  return {div_down(share.lo, spread_), min_nan(1, add_up(mul_up(share.hi, spread_), 2 * lost_))};
}

Interval SoftmaxRow::log_sum_exp() const {
  const Interval tail_sum{div_down(rest_.lo, spread_), add_up(mul_up(rest_.hi, spread_), lost_)};
  const Interval log_sum = size_ < 2 ? point(0) : log1p(tail_sum);
  return point(reference_) + log_sum / point(lambda_);
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "attention/head_ball.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"

namespace lipscope {
namespace {

double square_up(double x) { return mul_up(x, x); }
double product_up(double a, double b, double c) { return mul_up(mul_up(a, b), c); }

double bias_radius_up(std::span<const Interval> bias) {
  std::vector<double> radii;
  for (const Interval& x : bias) radii.push_back(radius_up(x));
  return norm2_up(radii);
}

// One row for each token j: sqrt(high share) (y_j - centre).
IntervalMatrix weighted_around(const IntervalMatrix& y, std::span<const double> centre,
                               std::span<const Interval> shares) {
  IntervalMatrix out = y;
  for (Index j = 0; j < y.rows; ++j) {
    const Interval root = sqrt(point(shares[static_cast<std::size_t>(j)].hi));
    for (Index b = 0; b < y.cols; ++b)
      out(j, b) = root * (y(j, b) - centre[static_cast<std::size_t>(b)]);
  }
  return out;
}

// The mean of the rows of y under a row of shares, as plain numbers: any centre will do.
std::vector<double> mean_row(const IntervalMatrix& y, std::span<const Interval> shares) {
  std::vector<double> mean(static_cast<std::size_t>(y.cols));
  for (Index j = 0; j < y.rows; ++j) {
    const double share = midpoint(shares[static_cast<std::size_t>(j)]);
    for (Index b = 0; b < y.cols; ++b)
      mean[static_cast<std::size_t>(b)] += share * midpoint(y(j, b));
  }
  return mean;
}

}  // namespace

HeadBall::HeadBall(const HeadAt& at, double radius, TokenNorm norm)
    : at_(at),
      radius_(radius),
      norm_(norm),
      value_norm_(spectral_norm_up(at.head().value)),
      score_norm_(spectral_norm_up(at.head().query * transposed(at.head().key))) {
  find_scores();
  find_spreads();
}

void HeadBall::find_scores() {
  const Index n = at_.head().tokens;
  scores_ = at_.scores();
  const double square = mul_up(score_norm_, square_up(radius_));
  parallel_for(n, rows_at_once(4 * n * at_.head().width), [&](Index from, Index to) {
    for (Index i = from; i < to; ++i) {
      const std::vector<double> centre = mean_row(at_.query_rates(), at_.shares().row(i));
      const double key = length_up(at_.key_rates().row(i));
      for (Index j = 0; j < n; ++j) {
        std::vector<Interval> query;
        for (Index b = 0; b < at_.head().width; ++b) {
          Interval rate = at_.query_rates()(j, b) - centre[static_cast<std::size_t>(b)];
          if (i == j) rate += at_.key_rates()(i, b);
          query.push_back(rate);
        }
        const double own = length_up(query);
        double first = own, second = square;
        if (i != j && norm_ == TokenNorm::kFrobenius) {
          first = sqrt_up(add_up(square_up(own), square_up(key)));
          second = square / 2;  // off by half a subnormal at most, which is added below
        } else if (i != j) {
          first = add_up(own, key);
        }
        const double change = add_up(add_up(mul_up(radius_, first), second), kMinSubnormal);
        Interval& score = scores_(i, j);
        score = {sub_down(score.lo, change), add_up(score.hi, change)};
      }
    }
  });
  shares_ = share_ranges(scores_);
}

void HeadBall::find_spreads() {
  const Index n = at_.head().tokens;
  const auto size = static_cast<std::size_t>(n);
  for (auto* list : {&top_, &reach_, &score_spread_, &value_spread_, &value_distance_, &key_rate_})
    list->resize(size);
  parallel_for(n, rows_at_once(4 * n * at_.head().width), [&](Index from, Index to) {
    for (Index i = from; i < to; ++i) {
      const auto k = static_cast<std::size_t>(i);
      double top = 0;
      for (const Interval& share : shares_.row(i)) top = std::max(top, share.hi);
      top_[k] = std::min(top, 1.0);
      // sqrt of the largest sum_j P_ij |d_j|^2 for d in the unit ball.
      reach_[k] = norm_ == TokenNorm::kFrobenius ? sqrt_up(top_[k]) : 1;
      const double moved = mul_up(radius_, reach_[k]);
      const auto before = at_.shares().row(i), now = shares_.row(i);
      score_spread_[k] = add_up(spectral_norm_up(weighted_around(
                                    at_.query_rates(), mean_row(at_.query_rates(), before), now)),
                                mul_up(score_norm_, moved));
      const std::vector<double> centre = midpoints(at_.mixed().row(i));
      value_spread_[k] = add_up(spectral_norm_up(weighted_around(at_.values(), centre, now)),
                                mul_up(value_norm_, moved));
      // |v_j - o_i| <= |v_j - o_i| at the centre, plus what v_j and o_i move.
      const IntervalMatrix away = deviations(at_.values(), at_.mixed(), i);
      double farthest = 0;
      std::vector<double> drift;
      for (Index j = 0; j < n; ++j) {
        const auto p = static_cast<std::size_t>(j);
        const double distance = length_up(away.row(j));
        farthest = std::max(farthest, distance);
        const double change =
            std::max(sub_up(now[p].hi, before[p].lo), sub_up(before[p].hi, now[p].lo));
        drift.push_back(mul_up(std::max(change, 0.0), distance));
      }
      value_distance_[k] =
          add_up(add_up(farthest, sum_up(drift)), mul_up(value_norm_, add_up(radius_, moved)));
      key_rate_[k] = add_up(length_up(at_.key_rates().row(i)), mul_up(score_norm_, radius_));
    }
  });
}

double HeadBall::largest_column(const std::vector<double>& terms) const {
  const Index n = at_.head().tokens;
  double largest = 0;
  for (Index j = 0; j < n; ++j) {
    std::vector<double> column;
    for (Index i = 0; i < n; ++i)
      column.push_back(mul_up(shares_(i, j).hi, terms[static_cast<std::size_t>(i)]));
    largest = std::max(largest, sum_up(column));
  }
  return largest;
}

double HeadBall::covariance_bound() const {
  const auto n = static_cast<std::size_t>(at_.head().tokens);
  double query = 0, together = 0;
  std::vector<double> keys, ones(n, 1.0);
  for (std::size_t i = 0; i < n; ++i) {
    const double q = mul_up(value_spread_[i], score_spread_[i]);
    const double k = mul_up(value_spread_[i], key_rate_[i]);
    query = std::max(query, q);
    together = std::max(together, add_up(q, k));
    keys.push_back(square_up(k));
  }
  if (norm_ == TokenNorm::kTokenMax) return add_up(value_norm_, together);
  std::vector<double> high;
  for (const Interval& share : shares_.entries) high.push_back(share.hi);
  const Index rows = at_.head().tokens;
  const double mixing =
      std::min(spectral_norm_up(IntervalMatrix(rows, rows, high)), sqrt_up(largest_column(ones)));
  return add_up(add_up(mul_up(value_norm_, mixing), query), sqrt_up(largest_column(keys)));
}

double HeadBall::curvature() const {
  const auto n = static_cast<std::size_t>(at_.head().tokens);
  double pure = 0, mixed = 0, all = 0;
  std::vector<double> far;
  for (std::size_t i = 0; i < n; ++i) {
    const double s = score_spread_[i], g = key_rate_[i], r = value_distance_[i];
    const double ee = mul_up(r, square_up(s));
    const double eq = mul_up(2, add_up(add_up(mul_up(s, value_norm_), product_up(s, g, r)),
                                       mul_up(score_norm_, value_spread_[i])));
    const double qq = add_up(mul_up(2 * g, value_norm_), mul_up(square_up(g), r));
    pure = std::max(pure, ee);
    mixed = std::max(mixed, mul_up(eq, reach_[i]));
    all = std::max(all, add_up(add_up(ee, eq), qq));
    far.push_back(mul_up(square_up(qq), top_[i]));
  }
  if (norm_ == TokenNorm::kTokenMax) return all;
  return add_up(add_up(pure, mixed), sqrt_up(largest_column(far)));
}

double HeadBall::length_bound() const {
  double longest = 0;
  const IntervalMatrix x(at_.head().tokens, at_.head().width, at_.tokens());
  for (Index i = 0; i < x.rows; ++i) longest = std::max(longest, length_up(x.row(i)));
  return lipscope::length_bound(at_.head(), add_up(longest, radius_), norm_);
}

double length_bound(const HeadWeights& head, double length, TokenNorm norm) {
  const double value = spectral_norm_up(head.value), query = spectral_norm_up(head.query);
  const double scores = spectral_norm_up(head.query * transposed(head.key));
  const double value_spread = add_up(mul_up(value, length), bias_radius_up(head.value_bias));
  const double score_spread =
      add_up(mul_up(scores, length), mul_up(query, bias_radius_up(head.key_bias)));
  double rate = mul_up(scores, length);
  if (!head.query_bias.empty()) {
    IntervalMatrix bias(1, head.key_width);
    bias.entries = head.query_bias;
    rate = add_up(rate, length_up((bias * transposed(head.key)).entries));
  }
  const double root = norm == TokenNorm::kFrobenius ? sqrt_up(static_cast<double>(head.tokens)) : 1;
  return add_up(add_up(mul_up(value, root), mul_up(value_spread, score_spread)),
                product_up(root, value_spread, rate));
}

double taylor_bound(const HeadAt& at, double norm_at_centre, double radius, TokenNorm norm,
                    int shells) {
  double bound = norm_at_centre, done = 0;
  for (int k = 1; k <= shells; ++k) {
    const double to = k == shells ? radius : radius * k / shells;
    bound = add_up(bound, mul_up(sub_up(to, done), HeadBall(at, to, norm).curvature()));
    done = to;
  }
  return bound;
}

}  // namespace lipscope

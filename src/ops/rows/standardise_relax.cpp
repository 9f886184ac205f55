// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/standardise_relax.h"

#include <algorithm>
#include <cmath>

namespace lipscope {
namespace {

// z = c / D on a box around a point, c being the row, centred or not, and D its divisor.
class NearRow {
 public:
  NearRow(const Group& x, const Divisor& divisor)
      : n_(static_cast<double>(x.size())),
        centred_(divisor.centred),
        middle_(x),
        ranges_(standardised_range(x, divisor)),
        divisor_(divisor.range(divisor.spread(x))) {
    bounded_ = is_bounded_group(x) && is_bounded(divisor_) && divisor_.lo > 0;
    if (!bounded_) return;
    find_center();
    find_reach();
    const Interval there = divisor.range(spread_);
    expands_ = !divisor.outside && there.lo > 0;
    if (!expands_) return;
    // D is a length over sqrt(n), up to epsilon: it moves by no more than c does.
    const double most = sqrt_up(square_reach_);
    const Interval moves = intersect(divisor_ - there, {-most, most});
    change_ = is_nan(moves) ? Interval{-most, most} : moves;
    inverse_ = 1 / there;
    for (const Interval& c : center_) z_.push_back(c * inverse_);
    const Interval d = intersect(there + change_, divisor_);
    now_ = is_nan(d) ? divisor_ : d;
    bend_ = sqr(change_) * (now_ + 2 * there) * inverse_ * inverse_ * inverse_ / (2 * now_);
    slope_change_ = -change_ * inverse_ / now_;
  }

  [[nodiscard]] const RowMiddle& middle() const { return middle_; }
  [[nodiscard]] Interval range(std::size_t i) const { return ranges_[i]; }

  // Of the planes that hold entry i, the one with the least room for it.
  [[nodiscard]] RowPlane plane(std::size_t i) const {
    const Interval by_range = ranges_[i];
    if (!bounded_) return flat(by_range);
    const double factor = midpoint(1 / divisor_);
    const Interval by_slope = center_[i] * factor + (center_[i] + Interval{-reach_[i], reach_[i]}) *
                                                        (1 / divisor_ - factor);
    Interval by_tangent = kEntire;
    if (expands_) {
      const Interval cube = inverse_ * inverse_ * inverse_;
      by_tangent = z_[i] + Interval{-reach_[i], reach_[i]} * slope_change_ +
                   center_[i] * (bend_ - cube * Interval{0, div_up(square_reach_, 2)});
    }
    const double room = std::min(width_up(by_slope), width_up(by_tangent));
    if (!(room < width_up(by_range))) return flat(by_range);
    return width_up(by_tangent) <= room ? tangent(i, by_tangent) : scaled(i, by_slope, factor);
  }

  // The same of 1 / D.
  [[nodiscard]] RowPlane inverse_plane() const {
    const Interval by_range = 1 / divisor_;
    if (!expands_) return flat(by_range);
    const Interval cube = inverse_ * inverse_ * inverse_;
    const Interval by_tangent = inverse_ + bend_ - cube * Interval{0, div_up(square_reach_, 2)};
    if (!(width_up(by_tangent) < width_up(by_range))) return flat(by_range);
    RowPlane p = flat(by_tangent);
    const Interval factor = -sqr(inverse_) / n_;
    for (std::size_t j = 0; j < p.gradient.size(); ++j) p.gradient[j] = factor * z_[j];
    return p;
  }

 private:
  void find_center() {
    Interval mean = point(0);
    for (const double m : middle_.at) mean += point(m);
    mean = centred_ ? mean / n_ : point(0);
    Interval squares = point(0);
    for (const double m : middle_.at) {
      center_.push_back(m - mean);
      squares += sqr(center_.back());
    }
    spread_ = squares / n_;
  }
  void find_reach() {
    std::vector<double> squares;
    const double all = sum_up(middle_.reach);
    for (const double r : middle_.reach) {
      // (1 - 1/n) of its own and 1/n of the others'.
      reach_.push_back(centred_ ? add_up(r, div_up(sub_up(all, 2 * r), n_)) : r);
      squares.push_back(mul_up(r, r));
    }
    square_reach_ = div_up(sum_up(squares), n_);
  }

  [[nodiscard]] RowPlane flat(const Interval& height) const {
    return {height, std::vector<Interval>(middle_.at.size(), point(0))};
  }
  [[nodiscard]] RowPlane scaled(std::size_t i, const Interval& height, double factor) const {
    RowPlane p = flat(height);
    if (centred_) std::ranges::fill(p.gradient, -point(factor) / n_);
    p.gradient[i] += point(factor);
    return p;
  }
  [[nodiscard]] RowPlane tangent(std::size_t i, const Interval& height) const {
    RowPlane p = flat(height);
    const Interval along = z_[i] * inverse_ / n_;
    const Interval mean = centred_ ? inverse_ / n_ : point(0);
    for (std::size_t j = 0; j < p.gradient.size(); ++j) p.gradient[j] = -(along * z_[j] + mean);
    p.gradient[i] += inverse_;
    return p;
  }

  double n_;
  bool centred_, bounded_ = false, expands_ = false;
  RowMiddle middle_;
  std::vector<Interval> ranges_, center_, z_;
  std::vector<double> reach_;  // of the entries of c
  Interval divisor_, spread_ = point(0);
  double square_reach_ = 0;  // of the mean square of c - center
  Interval change_ = kEntire, inverse_ = kEntire, now_ = kEntire, bend_ = kEntire,
           slope_change_ = kEntire;
};

}  // namespace

RowRelaxation relax_standardised(const Group& x, const Divisor& divisor, const ScaleAndBias& then) {
  const NearRow row(x, divisor);
  RowFormWriter lower(row.middle(), -1), upper(row.middle(), 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    RowPlane p = row.plane(i);
    p.height = p.height * then.scale[i] + then.bias[i];
    for (Interval& g : p.gradient) g *= then.scale[i];
    if (lower.plane(i, p) && upper.plane(i, p)) continue;
    const Interval range = row.range(i) * then.scale[i] + then.bias[i];
    lower.constant(i, range.lo);
    upper.constant(i, range.hi);
  }
  return {std::move(lower).forms(), std::move(upper).forms()};
}

InverseForms relax_inverse_deviation(const Group& x, const Divisor& divisor) {
  const NearRow row(x, divisor);
  const RowPlane p = row.inverse_plane();
  RowFormWriter lower(row.middle(), -1), upper(row.middle(), 1);
  if (x.size() == 0 || !lower.plane(0, p) || !upper.plane(0, p)) {
    const Interval range = 1 / divisor.range(divisor.spread(x));
    return {range.lo, range.hi, {}, {}};
  }
  const RowForms below = std::move(lower).forms(), above = std::move(upper).forms();
  const auto first = [&](const RowForms& forms) {
    return std::vector<double>(forms.weights.begin(),
                               forms.weights.begin() + static_cast<Index>(x.size()));
  };
  return {below.offsets[0], above.offsets[0], first(below), first(above)};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/row_bounds.h"

#include <algorithm>
#include <cmath>

namespace lipscope {
namespace {

double size_of(const Group& x) { return static_cast<double>(x.size()); }

// Sum of all terms but the i-th, for every i, without subtractions.
template <double (*kAdd)(double, double)>
std::vector<double> sums_of_others(std::span<const double> terms) {
  std::vector<double> result(terms.size());
  double after = 0;
  for (std::size_t i = terms.size(); i-- > 0;) {
    result[i] = after;
    after = kAdd(after, terms[i]);
  }
  double before = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    result[i] = kAdd(before, result[i]);
    before = kAdd(before, terms[i]);
  }
  return result;
}

// Norms of a matrix divided by a number that is not below `size`.
CornerNorms over(const CornerNorms& c, double size) {
  const auto divide = [&](double norm) {
    return norm == 0 ? 0 : size > 0 ? div_up(norm, size) : kInf;
  };
  return {divide(c.one_one), divide(c.inf_inf), divide(c.two_two), divide(c.one_inf),
          divide(c.inf_one)};
}

}  // namespace

SoftmaxTails::SoftmaxTails(const Group& x) {
  // A finite reference for each end; terms are at most 1 except where the end is infinite.
  double low = -kInf, high = -kInf;
  for (std::size_t i = 0; i < x.size(); ++i) {
    low = std::max(low, x.lower[i]);
    if (x.upper[i] < kInf) high = std::max(high, x.upper[i]);
  }
  if (low == -kInf) low = 0;
  if (high == -kInf) high = 0;
  std::vector<double> smallest(x.size()), largest(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    smallest[i] = exp_down(sub_down(x.lower[i], low));
    largest[i] = exp_up(sub_up(x.upper[i], high));
  }
  const std::vector<double> others_down = sums_of_others<add_down>(smallest);
  const std::vector<double> others_up = sums_of_others<add_up>(largest);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double from = sub_down(low, x.upper[i]), to = sub_up(high, x.lower[i]);
    tail_.push_back(
        {gain_mul_down(others_down[i], exp_down(from)), gain_mul_up(others_up[i], exp_up(to))});
    const double log_down_others = others_down[i] > 0 ? log_down(others_down[i]) : -kInf;
    const double log_up_others = others_up[i] > 0 ? log_up(others_up[i]) : -kInf;
    log_tail_.push_back(
        {from == -kInf || log_down_others == -kInf ? -kInf : add_down(log_down_others, from),
         log_up_others == -kInf                ? -kInf
         : to == kInf || log_up_others == kInf ? kInf
                                               : add_up(log_up_others, to)});
  }
}

Interval SoftmaxTails::share(std::size_t i) const {
  return {div_down(1, add_up(1, tail_[i].hi)), div_up(1, add_down(1, tail_[i].lo))};
}

Interval SoftmaxTails::log_share(std::size_t i) const {
  const Interval& t = tail_[i];
  const bool small = t.hi < 0x1p500;  // otherwise through the logarithm
  const double lowest = small ? log1p_up(t.hi) : softplus_up(log_tail_[i].hi);
  const double highest = t.lo < 0x1p500 ? log1p_down(t.lo) : softplus_down(log_tail_[i].lo);
  return {-lowest, -highest};
}

// T / (1 + T)^2 grows up to T = 1 and falls from there.
double SoftmaxTails::spread_up(std::size_t i) const {
  const Interval& t = tail_[i];
  if (contains(t, 1)) return 0.25;
  const double worst = t.hi < 1 ? t.hi : t.lo, below = add_down(1, worst);
  return min_nan(0.25, div_up(div_up(worst, below), below));
}

double SoftmaxTails::rest_up(std::size_t i) const {
  const double t = tail_[i].hi;
  return t == kInf ? 1 : min_nan(1, div_up(t, add_down(1, t)));
}

CornerNorms log_softmax_norms(const SoftmaxTails& tails) {
  const auto n = static_cast<double>(tails.size());
  double share = 0, rest = 0;
  std::vector<double> shares;
  for (std::size_t i = 0; i < tails.size(); ++i) {
    shares.push_back(tails.share(i).hi);
    share = std::max(share, shares.back());
    rest = std::max(rest, tails.rest_up(i));
  }
  // The shares add up to 1, so their squares to at most the largest.
  const double length = std::min({1.0, norm2_up(shares), sqrt_up(share)});
  return {.one_one = min_nan(std::max(1.0, n - 1), add_up(1, mul_up(n - 2, share))),
          .inf_inf = 2 * rest,
          .two_two = mul_up(sqrt_up(n), length),
          .one_inf = std::max(share, rest),
          .inf_one = 2 * (n - 1)};
}

Interval variance_range(const Group& x) {
  if (x.size() == 0) return point(0);
  // Bracket and start of a search for the point nearest to all intervals; any point is sound.
  double from = kInf, to = -kInf, sum = 0;
  bool bounded = true;
  for (std::size_t i = 0; i < x.size(); ++i) {
    from = std::min(from, x.upper[i]);
    to = std::max(to, x.lower[i]);
    bounded = bounded && is_bounded(x[i]);
    sum += midpoint(x[i]) / size_of(x);
  }
  double centre = sum;
  const double middle = std::isfinite(sum) ? sum : 0;
  const Interval nearest{std::min(from, to), std::max(from, to)};
  double a = nearest.lo, b = nearest.hi;
  if (from < to && is_bounded(nearest)) {
    for (int step = 0; step < 60 && a < b; ++step) {
      if (!(a <= centre && centre <= b)) centre = 0.5 * a + 0.5 * b;
      double slope = 0, active = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (centre < x.lower[i]) slope += centre - x.lower[i], ++active;
        if (centre > x.upper[i]) slope += centre - x.upper[i], ++active;
      }
      (slope < 0 ? a : b) = centre;
      if (slope == 0 || active == 0) break;
      const double next = centre - slope / active;
      if (next == centre) break;
      centre = next;
    }
  }
  if (!std::isfinite(centre)) return {0, kInf};
  double near = 0, far = 0, exact = 0;
  Interval slope = point(0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double c = centre;
    const Interval gap = c < x.lower[i]   ? point(c) - x.lower[i]
                         : c > x.upper[i] ? point(c) - x.upper[i]
                                          : point(0);
    near = add_down(near, mul_down(mignitude(gap), mignitude(gap)));
    slope += gap;
    exact += x.moves(i) ? 0 : 1;
    const double reach = std::max(sub_up(x.upper[i], middle), sub_up(middle, x.lower[i]));
    far = add_up(far, mul_up(reach, reach));
  }
  // The convex function lies above its tangent, and above it by (m - c)^2 for each exact entry; its
  // minimum lies between `from` and `to` if from < to.
  double smallest = 0;
  if (from < to && is_bounded(nearest)) {
    const double steep = magnitude(slope), away = magnitude(nearest - centre);
    smallest = sub_down(near, mul_up(mul_up(2, steep), away));
    if (exact > 0) {
      smallest = std::max(smallest, sub_down(near, mul_up(div_up(steep, exact), steep)));
    }
  }
  return {std::max(0.0, div_down(smallest, size_of(x))), bounded ? div_up(far, size_of(x)) : kInf};
}

std::vector<Interval> centred_range(const Group& x) {
  const double n = size_of(x);
  const double lower = sum_down(x.lower), upper = sum_up(x.upper);
  std::vector<Interval> result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    // x_i and the mean move together: the other entries decide the rest.
    const double width = sub_down(x.upper[i], x.lower[i]);
    Interval centred = kEntire;
    if (std::isfinite(upper) && std::isfinite(width)) {
      centred.lo = sub_down(x.lower[i], div_up(sub_up(upper, width), n));
    }
    if (std::isfinite(lower) && std::isfinite(width)) {
      centred.hi = sub_up(x.upper[i], div_down(add_down(lower, width), n));
    }
    result.push_back(centred);
  }
  return result;
}

Interval Divisor::range(const Interval& variance) const {
  return outside ? sqrt(variance) + epsilon : sqrt(variance + epsilon);
}

Interval Divisor::spread(const Group& x) const {
  if (centred) return variance_range(x);
  std::vector<double> low, high;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Interval square = sqr(x[i]);
    low.push_back(square.lo);
    high.push_back(square.hi);
  }
  if (x.size() == 0) return point(0);
  return {std::max(0.0, div_down(sum_down(low), size_of(x))), div_up(sum_up(high), size_of(x))};
}

namespace {

// x_i / sqrt(mean of squares + epsilon): grows with x_i, and falls in size with the others.
std::vector<Interval> rms_range(const Group& x, double epsilon) {
  const double n = size_of(x), limit = sqrt_up(n);
  std::vector<double> smallest, largest;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Interval square = sqr(x[i]);
    smallest.push_back(square.lo);
    largest.push_back(square.hi);
  }
  const std::vector<double> least = sums_of_others<add_down>(smallest);
  const std::vector<double> most = sums_of_others<add_up>(largest);
  // One end, with squares of the others that sum to `others`.
  const auto divided = [&](double v, double others) -> Interval {
    if (v == 0) return point(0);
    const Interval cap = v > 0 ? Interval{0, limit} : Interval{-limit, 0};
    if (!std::isfinite(v)) return cap;
    const Interval sum =
        sqr(point(v)) + (std::isfinite(others) ? point(others) : Interval{kMaxDouble, kInf});
    const Interval by = sqrt(sum / n + epsilon);
    if (!(by.lo > 0)) return cap;
    const Interval z = intersect(point(v) / by, cap);
    return is_nan(z) ? cap : z;
  };
  std::vector<Interval> result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double low = x.lower[i], high = x.upper[i];
    result.push_back({divided(low, low >= 0 ? most[i] : least[i]).lo,
                      divided(high, high >= 0 ? least[i] : most[i]).hi});
  }
  return result;
}

}  // namespace

std::vector<Interval> standardised_range(const Group& x, const Divisor& divisor) {
  if (!(divisor.range(divisor.spread(x)).lo > 0)) return std::vector(x.size(), kEntire);
  if (!divisor.centred) return rms_range(x, divisor.epsilon);
  const double others = size_of(x) - 1;
  const Interval by = divisor.range(variance_range(x));
  std::vector<Interval> result = centred_range(x);
  const double limit = sqrt_up(others);
  // The deviation is at least |c| / sqrt(n - 1), so c > 0 becomes at most this, growing with c.
  const auto largest = [&](double c) {
    if (c <= 0) return 0.0;
    if (c == kInf || others == 0) return limit;
    const double variance = div_down(mul_down(c, c), others);
    const double least = divisor.range(point(variance)).lo;
    return least > 0 ? min_nan(limit, div_up(c, least)) : limit;
  };
  for (Interval& c : result) {
    const Interval cap{-largest(-c.lo), largest(c.hi)};
    const Interval z = intersect(contains(by, 0) ? kEntire : c / by, cap);
    c = is_nan(z) ? cap : z;
  }
  return result;
}

CornerNorms standardised_norms(const Group& x, const Divisor& divisor,
                               std::span<const double> scale) {
  const double n = size_of(x), top = max_abs(scale);
  const double least = divisor.range(divisor.spread(x)).lo;
  if (!(least > 0)) return {};
  if (x.size() < (divisor.centred ? 2 : 1) || top == 0) return {0, 0, 0, 0, 0};
  const double projection = div_up(add_up(1, sqrt_up(n)), 2);
  const CornerNorms unit{.one_one = mul_up(top, projection),
                         .inf_inf = mul_up(top, projection),
                         .two_two = top,
                         .one_inf = divisor.centred ? mul_up(top, div_up(n - 1, n)) : top,
                         .inf_one = mul_up(norm2_up(scale), sqrt_up(n))};
  return over(unit, least);
}

std::vector<Interval> unit_row_range(const Group& x, bool one) {
  // The function ignores scale; a power of two keeps squares away from overflow.
  double top = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (is_bounded(x[i])) top = std::max(top, magnitude(x[i]));
  }
  const int exponent = top > 0 ? std::clamp(-std::ilogb(top), -1000, 1000) : 0;
  const double factor = std::ldexp(1.0, exponent);
  const auto power = [&](const Interval& size) { return one ? size : sqr(size); };
  std::vector<Interval> scaled(x.size());
  std::vector<double> smallest(x.size()), largest(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    scaled[i] = x[i] * factor;
    const Interval size = power(abs(scaled[i]));
    smallest[i] = size.lo, largest[i] = size.hi;
  }
  const std::vector<double> least = sums_of_others<add_down>(smallest);
  const std::vector<double> most = sums_of_others<add_up>(largest);
  // v / norm for v of either sign: far from 0 where the others are small.
  const auto unit = [&](double v, double others) -> Interval {
    if (v == 0) return point(0);
    if (std::isinf(v)) return v > 0 ? Interval{0, 1} : Interval{-1, 0};
    const Interval sum =
        power(abs(point(v))) + (others == kInf ? Interval{0, kInf} : point(others));
    const Interval norm = one ? sum : sqrt(sum);
    const Interval y = point(v) / norm;
    return others == kInf ? Interval{v > 0 ? 0 : -1.0, v > 0 ? 1.0 : 0.0}
                          : Interval{std::max(-1.0, y.lo), std::min(1.0, y.hi)};
  };
  std::vector<Interval> result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Interval& v = scaled[i];
    result.push_back({unit(v.lo, v.lo > 0 ? most[i] : least[i]).lo,
                      unit(v.hi, v.hi > 0 ? least[i] : most[i]).hi});
  }
  return result;
}

CornerNorms unit_row_norms(const Group& x, bool one) {
  const double n = size_of(x);
  std::vector<double> smallest;
  for (std::size_t i = 0; i < x.size(); ++i) smallest.push_back(mignitude(x[i]));
  const double norm = one ? abs_sum_down(smallest) : norm2_down(smallest);
  if (x.size() == 1) return norm > 0 ? CornerNorms{0, 0, 0, 0, 0} : CornerNorms{};
  if (one) return over({2, std::max(1.0, n - 1), sqrt_up(n), 1, 2 * (n - 1)}, norm);
  const double projection = div_up(add_up(1, sqrt_up(n)), 2);
  return over({projection, projection, 1, 1, n}, norm);
}

}  // namespace lipscope

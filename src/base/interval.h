// SPDX-License-Identifier: Apache-2.0
#pragma once

// Interval arithmetic on top of rounding.h: the result contains f(x) (or f(x, y)) for every real x
// in the operand (and y in the other) at which f is defined. Theory: docs/theory/rounding.md
// [rounding-14] to [rounding-17]. Thread safety: pure functions.
//
//   const Interval z = Interval{1, 2} * x + point(0.5);
//   if (contains(z, 0)) ...
//
// * An infinite endpoint means "unbounded but every member finite"; hence 0 * [-inf, inf] = 0.
//   Operands have lo <= hi, lo < +inf and hi > -inf, or are NaN.
// * NaN means "no value": a NaN endpoint in an operand, or an operand outside the domain (log of
//   negative numbers only, an empty intersection), gives {NaN, NaN}. Nothing else does.
// * Each occurrence of a variable counts as independent: x - x is not 0, sqr(x) beats x * x.

#include "base/rounding.h"

namespace lipscope {

inline constexpr Interval kEntire{-kInf, kInf};
inline constexpr Interval kNoInterval{kNaN, kNaN};

constexpr Interval point(double x) { return {x, x}; }
constexpr bool is_nan(const Interval& x) { return x.lo != x.lo || x.hi != x.hi; }
inline bool is_bounded(const Interval& x) { return std::isfinite(x.lo) && std::isfinite(x.hi); }

// False for NaN in either operand.
constexpr bool contains(const Interval& x, double v) { return x.lo <= v && v <= x.hi; }
constexpr bool contains(const Interval& x, const Interval& y) {
  return x.lo <= y.lo && y.hi <= x.hi;
}

constexpr Interval hull(const Interval& x, const Interval& y) {
  if (is_nan(x) || is_nan(y)) return kNoInterval;
  return {x.lo < y.lo ? x.lo : y.lo, x.hi > y.hi ? x.hi : y.hi};
}
// NaN if disjoint.
constexpr Interval intersect(const Interval& x, const Interval& y) {
  if (is_nan(x) || is_nan(y)) return kNoInterval;
  const Interval z{x.lo > y.lo ? x.lo : y.lo, x.hi < y.hi ? x.hi : y.hi};
  return z.lo <= z.hi ? z : kNoInterval;
}

inline double width_up(const Interval& x) { return sub_up(x.hi, x.lo); }
// A double inside x near the middle; 0 for the whole line, +-DBL_MAX for a half line.
inline double midpoint(const Interval& x) {
  if (is_nan(x)) return kNaN;
  if (x.lo == -kInf) return x.hi == kInf ? 0 : -kMaxDouble;
  if (x.hi == kInf) return kMaxDouble;
  const double m = 0.5 * x.lo + 0.5 * x.hi;
  return m < x.lo ? x.lo : (m > x.hi ? x.hi : m);
}
// Smallest r known with |v - midpoint(x)| <= r for every v in x.
inline double radius_up(const Interval& x) {
  const double m = midpoint(x);
  return max_nan(sub_up(x.hi, m), sub_up(m, x.lo));
}
// Largest and smallest absolute value of a member.
constexpr double magnitude(const Interval& x) {
  return max_nan(x.lo < 0 ? -x.lo : x.lo, x.hi < 0 ? -x.hi : x.hi);
}
constexpr double mignitude(const Interval& x) {
  if (is_nan(x)) return kNaN;
  return x.lo > 0 ? x.lo : (x.hi < 0 ? -x.hi : 0);
}

namespace interval_detail {

// Endpoint operations under "inf means unbounded but finite": 0 * inf = 0 and 0 / 0 = 0.
inline double mul_down0(double a, double b) { return a == 0 || b == 0 ? 0.0 : mul_down(a, b); }
inline double mul_up0(double a, double b) { return a == 0 || b == 0 ? 0.0 : mul_up(a, b); }
inline double div_down0(double a, double b) { return a == 0 ? 0.0 : div_down(a, b); }
inline double div_up0(double a, double b) { return a == 0 ? 0.0 : div_up(a, b); }

using Directed = double (*)(double);
template <Directed kDown, Directed kUp>
Interval increasing(const Interval& x) {
  if (is_nan(x)) return kNoInterval;
  return {kDown(x.lo), kUp(x.hi)};
}
template <Directed kDown, Directed kUp>
Interval decreasing(const Interval& x) {
  if (is_nan(x)) return kNoInterval;
  return {kDown(x.hi), kUp(x.lo)};
}

}  // namespace interval_detail

inline Interval operator-(const Interval& x) { return {-x.hi, -x.lo}; }

inline Interval operator+(const Interval& x, const Interval& y) {
  if (is_nan(x) || is_nan(y)) return kNoInterval;
  return {add_down(x.lo, y.lo), add_up(x.hi, y.hi)};
}
inline Interval operator-(const Interval& x, const Interval& y) {
  if (is_nan(x) || is_nan(y)) return kNoInterval;
  return {sub_down(x.lo, y.hi), sub_up(x.hi, y.lo)};
}

inline Interval operator*(const Interval& x, const Interval& y) {
  using interval_detail::mul_down0;
  using interval_detail::mul_up0;
  if (is_nan(x) || is_nan(y)) return kNoInterval;
  const double lo = min_nan(min_nan(mul_down0(x.lo, y.lo), mul_down0(x.lo, y.hi)),
                            min_nan(mul_down0(x.hi, y.lo), mul_down0(x.hi, y.hi)));
  const double hi = max_nan(max_nan(mul_up0(x.lo, y.lo), mul_up0(x.lo, y.hi)),
                            max_nan(mul_up0(x.hi, y.lo), mul_up0(x.hi, y.hi)));
  return {lo, hi};
}

// Quotients by the non-zero members of y. Zero inside y, or y = 0: the whole line. Zero at one end:
// a half line where the signs allow it.
inline Interval operator/(const Interval& x, const Interval& y) {
  using interval_detail::div_down0;
  using interval_detail::div_up0;
  if (is_nan(x) || is_nan(y)) return kNoInterval;
  if ((y.lo < 0 && y.hi > 0) || (y.lo == 0 && y.hi == 0)) return kEntire;
  if (y.hi <= 0) return -x / -y;
  return {div_down0(x.lo, x.lo >= 0 ? y.hi : y.lo), div_up0(x.hi, x.hi >= 0 ? y.lo : y.hi)};
}

inline Interval operator+(const Interval& x, double y) { return x + point(y); }
inline Interval operator+(double x, const Interval& y) { return point(x) + y; }
inline Interval operator-(const Interval& x, double y) { return x - point(y); }
inline Interval operator-(double x, const Interval& y) { return point(x) - y; }
inline Interval operator*(const Interval& x, double y) { return x * point(y); }
inline Interval operator*(double x, const Interval& y) { return point(x) * y; }
inline Interval operator/(const Interval& x, double y) { return x / point(y); }
inline Interval operator/(double x, const Interval& y) { return point(x) / y; }

inline Interval& operator+=(Interval& x, const Interval& y) { return x = x + y; }
inline Interval& operator-=(Interval& x, const Interval& y) { return x = x - y; }
inline Interval& operator*=(Interval& x, const Interval& y) { return x = x * y; }
inline Interval& operator/=(Interval& x, const Interval& y) { return x = x / y; }

constexpr Interval abs(const Interval& x) {
  if (is_nan(x)) return kNoInterval;
  return {mignitude(x), magnitude(x)};
}
constexpr Interval min(const Interval& x, const Interval& y) {
  if (is_nan(x) || is_nan(y)) return kNoInterval;
  return {min_nan(x.lo, y.lo), min_nan(x.hi, y.hi)};
}
constexpr Interval max(const Interval& x, const Interval& y) {
  if (is_nan(x) || is_nan(y)) return kNoInterval;
  return {max_nan(x.lo, y.lo), max_nan(x.hi, y.hi)};
}
inline Interval sqr(const Interval& x) {
  const Interval a = abs(x);
  return {mul_down(a.lo, a.lo), mul_up(a.hi, a.hi)};
}

// Functions with a restricted domain use the part of x inside it; NaN if there is none.
inline Interval sqrt(const Interval& x) {
  return interval_detail::increasing<sqrt_down, sqrt_up>(intersect(x, {0, kInf}));
}
inline Interval log(const Interval& x) {
  return interval_detail::increasing<log_down, log_up>(intersect(x, {0, kInf}));
}
inline Interval log2(const Interval& x) {
  return interval_detail::increasing<log2_down, log2_up>(intersect(x, {0, kInf}));
}
inline Interval log1p(const Interval& x) {
  return interval_detail::increasing<log1p_down, log1p_up>(intersect(x, {-1, kInf}));
}
inline Interval asin(const Interval& x) {
  return interval_detail::increasing<asin_down, asin_up>(intersect(x, {-1, 1}));
}
inline Interval acos(const Interval& x) {
  return interval_detail::decreasing<acos_down, acos_up>(intersect(x, {-1, 1}));
}
inline Interval atanh(const Interval& x) {
  return interval_detail::increasing<atanh_down, atanh_up>(intersect(x, {-1, 1}));
}
inline Interval acosh(const Interval& x) {
  return interval_detail::increasing<acosh_down, acosh_up>(intersect(x, {1, kInf}));
}

inline Interval exp(const Interval& x) { return interval_detail::increasing<exp_down, exp_up>(x); }
inline Interval expm1(const Interval& x) {
  return interval_detail::increasing<expm1_down, expm1_up>(x);
}
inline Interval tanh(const Interval& x) {
  return interval_detail::increasing<tanh_down, tanh_up>(x);
}
inline Interval sinh(const Interval& x) {
  return interval_detail::increasing<sinh_down, sinh_up>(x);
}
inline Interval cosh(const Interval& x) {
  return interval_detail::increasing<cosh_down, cosh_up>(abs(x));
}
inline Interval asinh(const Interval& x) {
  return interval_detail::increasing<asinh_down, asinh_up>(x);
}
inline Interval atan(const Interval& x) {
  return interval_detail::increasing<atan_down, atan_up>(x);
}
inline Interval erf(const Interval& x) { return interval_detail::increasing<erf_down, erf_up>(x); }
inline Interval erfc(const Interval& x) {
  return interval_detail::decreasing<erfc_down, erfc_up>(x);
}
inline Interval sigmoid(const Interval& x) {
  return interval_detail::increasing<sigmoid_down, sigmoid_up>(x);
}
inline Interval softplus(const Interval& x) {
  return interval_detail::increasing<softplus_down, softplus_up>(x);
}

namespace interval_detail {

// Range of f in {sin, cos} from its enclosures at both ends and the signs of f' there (at an end
// where f' is 0, the sign just inside) [rounding-16].
inline Interval wave(const Interval& x, const Interval& at_lo, const Interval& at_hi,
                     bool rising_at_lo, bool rising_at_hi) {
  Interval range = hull(at_lo, at_hi);
  if (x.lo == x.hi) return range;
  const double width = width_up(x);
  if (width >= 2 * kPiDown) return {-1, 1};
  if (rising_at_lo == rising_at_hi) return width <= kPiDown ? range : Interval{-1, 1};
  (rising_at_lo ? range.hi : range.lo) = rising_at_lo ? 1 : -1;
  return range;
}

}  // namespace interval_detail

// The signs of cos and sin at a double are those of the library's results: no double other than 0
// is a zero, and the relative error is far below 1.
inline Interval sin(const Interval& x) {
  if (is_nan(x)) return kNoInterval;
  if (!is_bounded(x)) return {-1, 1};
  return interval_detail::wave(x, {sin_down(x.lo), sin_up(x.lo)}, {sin_down(x.hi), sin_up(x.hi)},
                               std::cos(x.lo) > 0, std::cos(x.hi) > 0);
}
inline Interval cos(const Interval& x) {
  if (is_nan(x)) return kNoInterval;
  if (!is_bounded(x)) return {-1, 1};
  // cos' = -sin: just right of 0 it falls, just left of 0 it rises.
  return interval_detail::wave(x, {cos_down(x.lo), cos_up(x.lo)}, {cos_down(x.hi), cos_up(x.hi)},
                               std::sin(x.lo) < 0, std::sin(x.hi) < 0 || x.hi == 0);
}

// x^n for any integer n; x^0 = 1. For n < 0 zero is handled as in operator/.
inline Interval pow(const Interval& x, int n) {
  if (is_nan(x)) return kNoInterval;
  if (n == 0) return {1, 1};
  // The exponents are exact as doubles, also -INT_MIN.
  const double exponent = n;
  const bool even = n % 2 == 0;
  if (n > 0) {
    const Interval a = even ? abs(x) : x;
    return {pow_down(a.lo, exponent), pow_up(a.hi, exponent)};
  }
  const Interval a = even ? abs(x) : x;
  if ((a.lo < 0 && a.hi > 0) || (a.lo == 0 && a.hi == 0)) return even ? Interval{0, kInf} : kEntire;
  // Decreasing on each side of zero, and unbounded towards it.
  return {a.hi == 0 ? -kInf : pow_down(a.hi, exponent), a.lo == 0 ? kInf : pow_up(a.lo, exponent)};
}

// x^y for the non-negative members of x (NaN if none): monotone in each operand, so the four
// corners suffice [rounding-17].
inline Interval pow(const Interval& x, const Interval& y) {
  const Interval b = intersect(x, {0, kInf});
  if (is_nan(b) || is_nan(y)) return kNoInterval;
  const auto down = [](double base, double e) {
    return base == 0 && e < 0 ? kInf : pow_down(base, e);
  };
  const double lo = min_nan(min_nan(down(b.lo, y.lo), down(b.lo, y.hi)),
                            min_nan(down(b.hi, y.lo), down(b.hi, y.hi)));
  const double hi = max_nan(max_nan(pow_up(b.lo, y.lo), pow_up(b.lo, y.hi)),
                            max_nan(pow_up(b.hi, y.lo), pow_up(b.hi, y.hi)));
  // [0, 0]^negative has no value; any enclosure of the empty set will do.
  return lo == kInf ? Interval{0, kInf} : Interval{lo, hi};
}
inline Interval pow(const Interval& x, double y) { return pow(x, point(y)); }

}  // namespace lipscope

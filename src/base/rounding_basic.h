// SPDX-License-Identifier: Apache-2.0
#pragma once

// Directed scalar operations: the tightest double on the stated side. See rounding.h for the
// conventions. Thread safety: pure functions.

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

// Value-changing optimisations break every proof here. -ffp-contract=off cannot be seen by the
// preprocessor: the build sets it and rounding_self_test() checks it.
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__)
#error "Lipscope must not be compiled with -ffast-math or any of its parts"
#endif
static_assert(std::numeric_limits<double>::is_iec559 && std::numeric_limits<float>::is_iec559);
static_assert(std::numeric_limits<double>::digits == 53);
static_assert(FLT_EVAL_METHOD == 0, "extended intermediate precision rounds twice");

namespace lipscope {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kMaxDouble = std::numeric_limits<double>::max();
inline constexpr double kMinSubnormal = std::numeric_limits<double>::denorm_min();
inline constexpr double kUnitRoundoff = 0x1p-53;
// pi lies strictly between these neighbours; halving and doubling them is exact.
inline constexpr double kPiDown = 0x1.921fb54442d18p+1;
inline constexpr double kPiUp = 0x1.921fb54442d19p+1;

// A closed set of reals [lo, hi]. An infinite endpoint means "unbounded on that side"; both ends
// NaN means "no value". Arithmetic is in interval.h.
struct Interval {
  double lo = 0;
  double hi = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// Largest and smallest that keep NaN, unlike std::max, std::fmax and a plain comparison.
constexpr double max_nan(double a, double b) { return a != a ? a : (b != b ? b : (a < b ? b : a)); }
constexpr double min_nan(double a, double b) { return a != a ? a : (b != b ? b : (b < a ? b : a)); }

namespace rounding_detail {

constexpr std::int64_t kInfBits = 0x7ff0000000000000;

// Order-preserving integer of a double; both zeros map to 0, infinities to +-kInfBits. Not for NaN.
constexpr std::int64_t ordinal(double x) {
  const auto bits = std::bit_cast<std::int64_t>(x);
  return bits >= 0 ? bits : std::numeric_limits<std::int64_t>::min() - bits;
}
constexpr double from_ordinal(std::int64_t i) {
  return i >= 0 ? std::bit_cast<double>(i) : -std::bit_cast<double>(-i);
}
constexpr bool finite(double x) { return x - x == 0; }

}  // namespace rounding_detail

// The neighbouring double; the outer infinity and NaN stay. next_up(-inf) is -DBL_MAX.
constexpr double next_up(double x) {
  if (x != x || x == kInf) return x;
  return rounding_detail::from_ordinal(rounding_detail::ordinal(x) + 1);
}
constexpr double next_down(double x) { return -next_up(-x); }

// Moves up by `steps` ulp of the *exact* value that x approximates [rounding-6]. Just below a power
// of two an ulp of the exact value can be two ulp of x, hence the doubled step there.
// An infinite x is read as 2^1024, the rounded result of an overflow.
constexpr double ulps_up(double x, int steps) {
  if (x != x || x == kInf) return x;
  const std::int64_t i = rounding_detail::ordinal(x);
  std::int64_t j = i + steps;
  if (i > 0 && ((i + 2 * steps) >> 52) != (i >> 52)) j = i + 2 * steps;
  return rounding_detail::from_ordinal(j < rounding_detail::kInfBits ? j
                                                                     : rounding_detail::kInfBits);
}
constexpr double ulps_down(double x, int steps) { return -ulps_up(-x, steps); }

namespace rounding_detail {

// Result to return instead of a non-finite round-to-nearest result r of finite operands.
constexpr double overflow_up(double r) { return r == -kInf ? -kMaxDouble : r; }
constexpr double overflow_down(double r) { return r == kInf ? kMaxDouble : r; }

// a + b - s for s = RN(a + b) finite; exact, no intermediate overflow [rounding-2].
inline double add_error(double a, double b, double s) {
  if (std::fabs(a) < std::fabs(b)) std::swap(a, b);
  return b - (s - a);
}

// Sign of a * b - p for p = RN(a * b) finite [rounding-3].
inline double mul_error_sign(double a, double b, double p) {
  if (std::fabs(p) >= 0x1p-900) return std::fma(a, b, -p);
  if (a == 0 || b == 0) return 0;
  if (p == 0) return (a > 0) == (b > 0) ? 1 : -1;
  if (std::fabs(a) < std::fabs(b)) std::swap(a, b);
  return std::fma(a, b * 0x1p200, -(p * 0x1p200));
}

// Sign of a / b - q for q = RN(a / b) finite, a and b finite, b != 0 [rounding-4].
inline double div_error_sign(double a, double b, double q) {
  double r;
  if (std::fabs(a) >= 0x1p-900) {
    r = std::fma(-q, b, a);
  } else if (std::fabs(b) < 1) {
    r = std::fma(-q, b * 0x1p200, a * 0x1p200);
  } else {
    r = std::fma(-(q * 0x1p200), b, a * 0x1p200);
  }
  return b > 0 ? r : -r;
}

// Sign of sqrt(a) - s for s = RN(sqrt(a)), a finite and positive [rounding-5].
inline double sqrt_error_sign(double a, double s) {
  if (a >= 0x1p-900) return std::fma(-s, s, a);
  const double t = s * 0x1p100;
  return std::fma(-t, t, a * 0x1p200);
}

}  // namespace rounding_detail

inline double add_up(double a, double b) {
  namespace d = rounding_detail;
  const double s = a + b;
  if (!d::finite(s)) return d::finite(a) && d::finite(b) ? d::overflow_up(s) : s;
  return d::add_error(a, b, s) > 0 ? next_up(s) : s;
}
inline double add_down(double a, double b) {
  namespace d = rounding_detail;
  const double s = a + b;
  if (!d::finite(s)) return d::finite(a) && d::finite(b) ? d::overflow_down(s) : s;
  return d::add_error(a, b, s) < 0 ? next_down(s) : s;
}

inline double sub_up(double a, double b) { return add_up(a, -b); }
inline double sub_down(double a, double b) { return add_down(a, -b); }

inline double mul_up(double a, double b) {
  namespace d = rounding_detail;
  const double p = a * b;
  if (!d::finite(p)) return d::finite(a) && d::finite(b) ? d::overflow_up(p) : p;
  return d::mul_error_sign(a, b, p) > 0 ? next_up(p) : p;
}
inline double mul_down(double a, double b) {
  namespace d = rounding_detail;
  const double p = a * b;
  if (!d::finite(p)) return d::finite(a) && d::finite(b) ? d::overflow_down(p) : p;
  return d::mul_error_sign(a, b, p) < 0 ? next_down(p) : p;
}

inline double div_up(double a, double b) {
  namespace d = rounding_detail;
  if (b == 0) return a == 0 || a != a ? kNaN : kInf;
  const double q = a / b;
  if (!d::finite(a) || !d::finite(b)) return q;
  if (!d::finite(q)) return d::overflow_up(q);
  return d::div_error_sign(a, b, q) > 0 ? next_up(q) : q;
}
inline double div_down(double a, double b) {
  namespace d = rounding_detail;
  if (b == 0) return a == 0 || a != a ? kNaN : -kInf;
  const double q = a / b;
  if (!d::finite(a) || !d::finite(b)) return q;
  if (!d::finite(q)) return d::overflow_down(q);
  return d::div_error_sign(a, b, q) < 0 ? next_down(q) : q;
}

// NaN below zero.
inline double sqrt_up(double a) {
  const double s = std::sqrt(a);
  if (!(a > 0) || a == kInf) return s;
  return rounding_detail::sqrt_error_sign(a, s) > 0 ? next_up(s) : s;
}
inline double sqrt_down(double a) {
  const double s = std::sqrt(a);
  if (!(a > 0) || a == kInf) return s;
  return rounding_detail::sqrt_error_sign(a, s) < 0 ? next_down(s) : s;
}

// Product of two gains (upper bounds of Lipschitz constants, both >= 0 or +inf): a map of gain
// exactly 0 is constant, so 0 * inf is 0. NaN still propagates.
inline double gain_mul_up(double a, double b) {
  if (a != a || b != b) return kNaN;
  return a == 0 || b == 0 ? 0.0 : mul_up(a, b);
}
inline double gain_mul_down(double a, double b) {
  if (a != a || b != b) return kNaN;
  return a == 0 || b == 0 ? 0.0 : mul_down(a, b);
}

// Conversion to float. Above FLT_MAX, up is +inf and down is FLT_MAX.
inline float narrow_up(double x) {
  constexpr float kMax = std::numeric_limits<float>::max();
  if (x > static_cast<double>(kMax)) return std::numeric_limits<float>::infinity();
  if (x < -static_cast<double>(kMax)) return x == -kInf ? static_cast<float>(x) : -kMax;
  const auto f = static_cast<float>(x);
  if (!(static_cast<double>(f) < x)) return f;
  return std::nextafterf(f, std::numeric_limits<float>::infinity());
}
inline float narrow_down(double x) { return -narrow_up(-x); }

// Decimal text with `digits` significant digits (clamped to 1..767), as %g writes it but rounded
// outward, independent of the locale: the number written, read as an exact decimal, is >= x (<= x).
// "inf", "-inf", "nan" otherwise. Text of a bound near DBL_MAX may read back as inf.
std::string format_up(double x, int digits);
std::string format_down(double x, int digits);

// True if the running process still has the arithmetic the proofs assume: round to nearest,
// subnormals kept, IEEE infinities, NaN comparisons and signed zeros, a fused std::fma, no
// contraction of a * b - c, and library functions within their steps at hard arguments.
// Call once at start-up: a linked object built with -ffast-math changes the whole process.
bool rounding_self_test();

}  // namespace lipscope

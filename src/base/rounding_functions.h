// SPDX-License-Identifier: Apache-2.0
#pragma once

// Directed elementary functions: the C library's result, moved outward by a fixed number of ulp and
// clamped to what is known of the exact value. See rounding.h for the conventions.
//
// Assumption [rounding-7]: the library's error at every argument is below the step of the function.
// It is not proved for glibc, only measured (docs/theory/rounding.md has the figures) and checked
// by the tests and rounding_self_test(). Never replace these calls by a vector maths library.

#include <cmath>

#include "base/rounding_basic.h"

namespace lipscope {

// Steps in ulp of the exact value. One ulp is not enough for erf, tanh, sinh, cosh and erfc.
inline constexpr int kStepExp = 2;   // exp, log, log2, pow, expm1, log1p
inline constexpr int kStepTrig = 2;  // sin, cos, tan, atan, asin, acos
inline constexpr int kStepErf = 3;
inline constexpr int kStepErfc = 8;
inline constexpr int kStepHyperbolic = 4;  // tanh, sinh, cosh and the inverse functions

inline double exp_up(double x) {
  const double y = std::exp(x);
  if (!std::isfinite(x)) return y;
  const double bound = ulps_up(y, kStepExp);
  return x <= 0 ? min_nan(bound, 1) : bound;
}
inline double exp_down(double x) {
  const double y = std::exp(x);
  if (!std::isfinite(x)) return y;
  return max_nan(ulps_down(y, kStepExp), x >= 0 ? 1 : 0);
}

// exp(x) - 1 >= x.
inline double expm1_up(double x) {
  const double y = std::expm1(x);
  if (!std::isfinite(x) || x == 0) return y;
  const double bound = ulps_up(y, kStepExp);
  return x < 0 ? min_nan(bound, 0) : bound;
}
inline double expm1_down(double x) {
  const double y = std::expm1(x);
  if (!std::isfinite(x) || x == 0) return y;
  return max_nan(ulps_down(y, kStepExp), x < -1 ? -1 : x);
}

// Natural logarithm; -inf at 0, NaN below.
inline double log_up(double x) {
  const double y = std::log(x);
  if (!std::isfinite(x) || x == 0 || x == 1) return y;
  const double bound = ulps_up(y, kStepExp);
  return x < 1 ? min_nan(bound, 0) : bound;
}
inline double log_down(double x) {
  const double y = std::log(x);
  if (!std::isfinite(x) || x == 0 || x == 1) return y;
  const double bound = ulps_down(y, kStepExp);
  return x > 1 ? max_nan(bound, 0) : bound;
}

// log(1 + x) <= x; -inf at -1, NaN below.
inline double log1p_up(double x) {
  const double y = std::log1p(x);
  if (!std::isfinite(x) || x == 0 || x == -1) return y;
  return min_nan(ulps_up(y, kStepExp), x);
}
inline double log1p_down(double x) {
  const double y = std::log1p(x);
  if (!std::isfinite(x) || x == 0 || x == -1) return y;
  const double bound = ulps_down(y, kStepExp);
  return x > 0 ? max_nan(bound, 0) : bound;
}

// Exact at powers of two; -inf at 0, NaN below.
inline double log2_up(double x) {
  if (std::isfinite(x) && x > 0) {
    int exponent = 0;
    if (std::frexp(x, &exponent) == 0.5) return exponent - 1;
  }
  const double y = std::log2(x);
  if (!std::isfinite(x) || x == 0) return y;
  const double bound = ulps_up(y, kStepExp);
  return x < 1 ? min_nan(bound, 0) : bound;
}
inline double log2_down(double x) {
  if (std::isfinite(x) && x > 0) {
    int exponent = 0;
    if (std::frexp(x, &exponent) == 0.5) return exponent - 1;
  }
  const double y = std::log2(x);
  if (!std::isfinite(x) || x == 0) return y;
  const double bound = ulps_down(y, kStepExp);
  return x > 1 ? max_nan(bound, 0) : bound;
}

// x^y: NaN for x < 0 unless y is an integer; 0^y for y < 0 is +inf up and -inf down; x^0 is 1.
// Exactly rounded for y in {-1, 0, 1/2, 1, 2}.
inline double pow_up(double x, double y) {
  if (x != x || y != y) return kNaN;
  if (y == 2) return mul_up(x, x);
  if (y == -1) return div_up(1, x);
  if (y == 0.5) return sqrt_up(x);
  const double r = std::pow(x, y);
  if (!std::isfinite(x) || !std::isfinite(y) || x == 1 || y == 0 || y == 1) return r;
  if (x == 0) return y < 0 ? kInf : 0;
  const double bound = ulps_up(r, kStepExp);
  if (x < 0) return r < 0 || (r == 0 && std::signbit(r)) ? min_nan(bound, 0) : bound;
  return (x < 1) == (y > 0) ? min_nan(bound, 1) : bound;
}
inline double pow_down(double x, double y) {
  if (x != x || y != y) return kNaN;
  if (y == 2) return mul_down(x, x);
  if (y == -1) return div_down(1, x);
  if (y == 0.5) return sqrt_down(x);
  const double r = std::pow(x, y);
  if (!std::isfinite(x) || !std::isfinite(y) || x == 1 || y == 0 || y == 1) return r;
  if (x == 0) return y < 0 ? -kInf : 0;
  const double bound = ulps_down(r, kStepExp);
  if (x < 0) return r > 0 || (r == 0 && !std::signbit(r)) ? max_nan(bound, 0) : bound;
  return max_nan(bound, (x < 1) == (y > 0) ? 0 : 1);
}

// 0 <= tanh(x) <= min(x, 1) for x >= 0; odd.
inline double tanh_up(double x) {
  const double y = std::tanh(x);
  if (!std::isfinite(x)) return y;
  return min_nan(ulps_up(y, kStepHyperbolic), x < 0 ? 0 : (x < 1 ? x : 1));
}
inline double tanh_down(double x) { return -tanh_up(-x); }

// x <= sinh(x) for x >= 0; odd.
inline double sinh_up(double x) {
  const double y = std::sinh(x);
  if (!std::isfinite(x) || x == 0) return y;
  const double bound = ulps_up(y, kStepHyperbolic);
  return x < 0 ? min_nan(bound, x) : bound;
}
inline double sinh_down(double x) { return -sinh_up(-x); }

// cosh(x) >= 1; even.
inline double cosh_up(double x) {
  const double y = std::cosh(x);
  return !std::isfinite(x) || x == 0 ? y : ulps_up(y, kStepHyperbolic);
}
inline double cosh_down(double x) {
  const double y = std::cosh(x);
  return !std::isfinite(x) ? y : max_nan(ulps_down(y, kStepHyperbolic), 1);
}

// 0 <= erf(x) <= 1 for x >= 0; odd.
inline double erf_up(double x) {
  const double y = std::erf(x);
  if (!std::isfinite(x) || x == 0) return y;
  return min_nan(ulps_up(y, kStepErf), x < 0 ? 0 : 1);
}
inline double erf_down(double x) { return -erf_up(-x); }

// 1 - erf(x), in [0, 1] for x >= 0 and in [1, 2] for x <= 0.
inline double erfc_up(double x) {
  const double y = std::erfc(x);
  if (!std::isfinite(x) || x == 0) return y;
  return min_nan(ulps_up(y, kStepErfc), x > 0 ? 1 : 2);
}
inline double erfc_down(double x) {
  const double y = std::erfc(x);
  if (!std::isfinite(x) || x == 0) return y;
  return max_nan(ulps_down(y, kStepErfc), x > 0 ? 0 : 1);
}

// Beyond kLargeAngle the library's argument reduction has only an absolute accuracy: glibc 2.36 is
// wrong by 1.4e5 ulp next to a multiple of pi/2, an absolute error of 2^-92.9. The slack covers
// that with room, and disappears in the rounding of any result above 2^-17.
inline constexpr double kLargeAngle = 0x1p26;
inline constexpr double kLargeAngleSlack = 0x1p-70;

namespace rounding_detail {
inline double angle_slack(double x) { return std::fabs(x) > kLargeAngle ? kLargeAngleSlack : 0; }
}  // namespace rounding_detail

// 0 <= sin(x) <= min(x, 1) for 0 <= x <= 3; odd.
inline double sin_up(double x) {
  const double y = std::sin(x);
  if (!std::isfinite(x)) return y;
  const double cap = x >= 0 ? (x < 1 ? x : 1) : (x >= -3 ? 0 : 1);
  return min_nan(add_up(ulps_up(y, kStepTrig), rounding_detail::angle_slack(x)), cap);
}
inline double sin_down(double x) { return -sin_up(-x); }

inline double cos_up(double x) {
  const double y = std::cos(x);
  if (!std::isfinite(x)) return y;
  return min_nan(add_up(ulps_up(y, kStepTrig), rounding_detail::angle_slack(x)), 1);
}
inline double cos_down(double x) {
  const double y = std::cos(x);
  if (!std::isfinite(x) || x == 0) return y;
  return max_nan(sub_down(ulps_down(y, kStepTrig), rounding_detail::angle_slack(x)), -1);
}

// tan(x) >= x for 0 <= x < pi/2; odd. A quotient for large angles: the slack is on sin and cos.
inline double tan_up(double x) {
  const double y = std::tan(x);
  if (!std::isfinite(x) || x == 0) return y;
  if (std::fabs(x) > kLargeAngle) {
    const double c_down = cos_down(x), c_up = cos_up(x);
    const double s = c_down > 0 ? sin_up(x) : sin_down(x);
    if (c_down > 0) return div_up(s, s >= 0 ? c_down : c_up);
    if (c_up < 0) return div_up(s, s <= 0 ? c_up : c_down);
    return kInf;
  }
  const double bound = ulps_up(y, kStepTrig);
  return x < 0 && x >= -kPiDown / 2 ? min_nan(bound, x) : bound;
}
inline double tan_down(double x) { return -tan_up(-x); }

// 0 <= atan(x) <= min(x, pi/2) for x >= 0; odd.
inline double atan_up(double x) {
  const double y = std::atan(x);
  const double cap = x < 0 ? (x == -kInf ? -kPiDown / 2 : 0) : (x < kPiUp / 2 ? x : kPiUp / 2);
  return min_nan(ulps_up(y, kStepTrig), cap);
}
inline double atan_down(double x) { return -atan_up(-x); }

// x <= asin(x) <= pi/2 for 0 <= x <= 1; odd; NaN outside [-1, 1].
inline double asin_up(double x) {
  const double y = std::asin(x);
  if (x == 0) return y;
  return min_nan(ulps_up(y, kStepTrig), x < 0 ? x : kPiUp / 2);
}
inline double asin_down(double x) { return -asin_up(-x); }

// In [0, pi]; NaN outside [-1, 1].
inline double acos_up(double x) {
  const double y = std::acos(x);
  return x == 1 ? 0 : min_nan(ulps_up(y, kStepTrig), kPiUp);
}
inline double acos_down(double x) { return max_nan(ulps_down(std::acos(x), kStepTrig), 0); }

// 0 <= asinh(x) <= x for x >= 0; odd.
inline double asinh_up(double x) {
  const double y = std::asinh(x);
  if (!std::isfinite(x)) return y;
  return min_nan(ulps_up(y, kStepHyperbolic), x < 0 ? 0 : x);
}
inline double asinh_down(double x) { return -asinh_up(-x); }

// >= 0; NaN below 1.
inline double acosh_up(double x) {
  const double y = std::acosh(x);
  return x == 1 || !std::isfinite(x) ? y : ulps_up(y, kStepHyperbolic);
}
inline double acosh_down(double x) {
  const double y = std::acosh(x);
  return !std::isfinite(x) ? y : max_nan(ulps_down(y, kStepHyperbolic), 0);
}

// x <= atanh(x) for 0 <= x < 1; odd; +-inf at +-1, NaN outside.
inline double atanh_up(double x) {
  const double y = std::atanh(x);
  if (x == 0 || x == 1 || x == -1) return y;
  const double bound = ulps_up(y, kStepHyperbolic);
  return x < 0 ? min_nan(bound, x) : bound;
}
inline double atanh_down(double x) { return -atanh_up(-x); }

// 1 / (1 + exp(-x)), from e = exp(-|x|) as 1 / (1 + e) or e / (1 + e) [rounding-8]; in [0, 1/2] for
// x <= 0 and in [1/2, 1] for x >= 0.
inline double sigmoid_up(double x) {
  if (x >= 0) return min_nan(div_up(1, add_down(1, exp_down(-x))), 1);
  const double e = exp_up(x);
  return min_nan(div_up(e, add_down(1, e)), 0.5);
}
inline double sigmoid_down(double x) {
  if (x >= 0) return max_nan(div_down(1, add_up(1, exp_up(-x))), 0.5);
  const double e = exp_down(x);
  return max_nan(div_down(e, add_up(1, e)), 0);
}

// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)) [rounding-8].
inline double softplus_up(double x) {
  return x > 0 ? add_up(x, log1p_up(exp_up(-x))) : log1p_up(exp_up(x));
}
inline double softplus_down(double x) {
  return x > 0 ? add_down(x, log1p_down(exp_down(-x))) : log1p_down(exp_down(x));
}

}  // namespace lipscope

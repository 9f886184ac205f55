// SPDX-License-Identifier: Apache-2.0
#include "machine/arithmetic.h"

#include <algorithm>
#include <cmath>

namespace lipscope {
namespace {

bool is_zero(const Computed& x) { return x.real.lo == 0 && x.real.hi == 0 && x.error == 0; }
bool is_unit(const Computed& x) {
  return x.real.lo == x.real.hi && std::fabs(x.real.lo) == 1 && x.error == 0;
}

}  // namespace

Computed Machine::stored(const Interval& number) const {
  if (is_nan(number) || !is_bounded(number)) return unknown(number);
  const double size = magnitude(number);
  if (size == 0) return {number, 0};
  double error = 0;
  if (number.lo == number.hi) {
    const double nearest = round_to(values_.type, number.lo);
    if (!std::isfinite(nearest)) return unknown(number);
    error = sub_up(std::max(nearest, number.lo), std::min(nearest, number.lo));
  } else {
    if (!(size <= values_.most)) return unknown(number);
    error = add_up(mul_up(values_.unit, size), values_.tiny);
  }
  // A number this small may be taken for zero, or not.
  if (flush_ && mignitude(number) < values_.normal)
    error = std::max(error, std::min(size, values_.normal));
  return {number, error};
}

// What an exact operation on computed numbers gives, rounded.
Computed Machine::rounded(const Interval& real, double error, bool may_underflow) const {
  const double size = add_up(magnitude(real), error);
  if (!(size <= values_.most)) return unknown(real);  // NaN, too
  double rounding = mul_up(values_.unit, size);
  const bool small = !(sub_down(mignitude(real), error) >= values_.normal);
  if (small && (may_underflow || flush_)) rounding = add_up(rounding, lost(values_));
  return {real, size == 0 ? 0 : add_up(error, rounding)};
}

Computed Machine::add(const Computed& a, const Computed& b) const {
  if (is_zero(a)) return b;
  if (is_zero(b)) return a;
  // Sums are exact below the normal numbers.
  const Computed sum = rounded(a.real + b.real, add_up(a.error, b.error), false);
  if (flush_ || !(sum.error < kInf)) return sum;
  // The nearest number is no farther than either operand is.
  const double most = std::min(a.size(), b.size());
  return {sum.real, std::min(sum.error, add_up(add_up(a.error, b.error), most))};
}

Computed Machine::sub(const Computed& a, const Computed& b) const {
  return add(a, {-b.real, b.error});
}

Computed Machine::mul(const Computed& a, const Computed& b) const {
  const Interval real = a.real * b.real;
  if (!(a.error < kInf) || !(b.error < kInf)) return unknown(real);
  if (is_unit(a)) return {real, b.error};
  if (is_unit(b)) return {real, a.error};
  const double error = add_up(mul_up(magnitude(a.real), b.error), mul_up(a.error, b.size()));
  return rounded(real, error, true);
}

Computed Machine::quotient(const Computed& a, const Computed& b) const {
  const Interval real = a.real / b.real;
  const double least = sub_down(mignitude(b.real), b.error);
  if (!(a.error < kInf) || !(b.error < kInf) || !(least > 0)) return unknown(real);
  if (is_unit(b)) return {real, a.error};
  const double error = div_up(add_up(a.error, mul_up(magnitude(real), b.error)), least);
  return rounded(real, error, true);
}

Computed Machine::div(const Computed& a, const Computed& b) const {
  const Computed plain = quotient(a, b);
  const Computed reciprocal = mul(a, quotient({point(1), 0}, b));
  return {plain.real, std::max(plain.error, reciprocal.error)};
}

Computed Machine::sqrt(const Computed& a) const {
  const Interval real = lipscope::sqrt(a.real);
  const Interval seen = a.seen();
  if (!(a.error < kInf) || !(seen.lo >= 0) || is_nan(real)) return unknown(real);
  if (a.error == 0) return rounded(real, 0, false);
  // |sqrt x - sqrt y| = |x - y| / (sqrt x + sqrt y).
  const double roots = add_down(lipscope::sqrt(point(seen.lo)).lo, real.lo);
  return rounded(real, roots > 0 ? div_up(a.error, roots) : kInf, false);
}

Computed Machine::library(const Interval& real, double error, double absolute) const {
  const double size = add_up(magnitude(real), error);
  if (!(size < kInf)) return unknown(real);
  const double ulps = add_up(mul_up(2 * kLibraryUlps * values_.unit, size),
                             mul_up(2 * kLibraryUlps, lost(values_)));
  const double all = add_up(add_up(error, ulps), absolute);
  return {real, add_up(magnitude(real), all) <= values_.most ? all : kInf};
}

Computed Machine::max(const Computed& a, const Computed& b) {
  return {lipscope::max(a.real, b.real), std::max(a.error, b.error)};
}
Computed Machine::min(const Computed& a, const Computed& b) {
  return {lipscope::min(a.real, b.real), std::max(a.error, b.error)};
}

Computed Machine::branch(const Computed& x, double boundary, const Branch& below,
                         const Branch& from) {
  if (x.real.hi < boundary) return below(x);
  if (x.real.lo >= boundary) return from(x);
  const Computed left = below({{x.real.lo, boundary}, x.error});
  const Computed right = from({{boundary, x.real.hi}, x.error});
  return {hull(left.real, right.real), std::max(left.error, right.error)};
}

}  // namespace lipscope

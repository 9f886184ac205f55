// SPDX-License-Identifier: Apache-2.0
#include "base/rational.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/interval.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

using Int128 = Rational::Int128;

[[noreturn]] void too_long() {
  throw Error(ErrorCode::kUnsupported, "numbers with too many digits for exact fractions");
}

Int128 times(Int128 a, Int128 b) {
  Int128 product = 0;
  if (__builtin_mul_overflow(a, b, &product)) too_long();
  return product;
}
Int128 plus(Int128 a, Int128 b) {
  Int128 sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) too_long();
  return sum;
}
Int128 negated(Int128 a) {
  Int128 result = 0;
  if (__builtin_sub_overflow(Int128{0}, a, &result)) too_long();
  return result;
}

// Of non-negative numbers.
Int128 common_divisor(Int128 a, Int128 b) {
  constexpr Int128 kShort = std::numeric_limits<std::int64_t>::max();
  while (b != 0) {
    if (a <= kShort && b <= kShort)
      return std::gcd(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b));
    const Int128 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

Interval doubles_around(Int128 n) {
  const auto near = static_cast<double>(n);
  const auto back = static_cast<Int128>(near);  // below 2^127 but for the largest n
  if (std::fabs(near) >= 0x1p126) return {next_down(near), next_up(near)};
  return {back > n ? next_down(near) : near, back < n ? next_up(near) : near};
}

}  // namespace

Rational::Rational(Int128 over, Int128 under) : over_(over), under_(under) {
  LIPSCOPE_CHECK(under != 0);
  if (under_ < 0) {
    over_ = negated(over_);
    under_ = negated(under_);
  }
  const Int128 shared = common_divisor(over_ < 0 ? negated(over_) : over_, under_);
  over_ /= shared;
  under_ /= shared;
}

Rational::Rational(double x) {
  LIPSCOPE_CHECK(std::isfinite(x));
  if (x == 0) return;
  int exponent = 0;
  auto digits = static_cast<std::int64_t>(std::frexp(x, &exponent) * 0x1p53);
  exponent -= 53;
  while (digits % 2 == 0) {
    digits /= 2;
    ++exponent;
  }
  if (exponent > 126 || exponent < -126) too_long();
  over_ = exponent > 0 ? times(digits, Int128{1} << exponent) : Int128{digits};
  if (exponent < 0) under_ = Int128{1} << -exponent;
}

std::int64_t Rational::floor() const {
  Int128 quotient = over_ / under_;
  if (over_ % under_ < 0) --quotient;
  if (quotient > std::numeric_limits<std::int64_t>::max() ||
      quotient < std::numeric_limits<std::int64_t>::min())
    too_long();
  return static_cast<std::int64_t>(quotient);
}

Interval Rational::enclosed() const { return doubles_around(over_) / doubles_around(under_); }

Rational Rational::operator-() const {
  Rational result = *this;
  result.over_ = negated(over_);
  return result;
}

Rational Rational::operator+(const Rational& y) const {
  const Int128 shared = common_divisor(under_, y.under_);
  const Int128 own = y.under_ / shared;
  return {plus(times(over_, own), times(y.over_, under_ / shared)), times(under_, own)};
}

Rational Rational::operator*(const Rational& y) const {
  const Rational across(over_, y.under_), down(y.over_, under_);
  return {times(across.over_, down.over_), times(across.under_, down.under_)};
}

Rational Rational::operator/(const Rational& y) const {
  LIPSCOPE_CHECK(y.over_ != 0);
  Rational inverse;
  inverse.over_ = y.over_ < 0 ? negated(y.under_) : y.under_;
  inverse.under_ = y.over_ < 0 ? negated(y.over_) : y.over_;
  return *this * inverse;
}

std::strong_ordering Rational::operator<=>(const Rational& y) const {
  return (*this - y).over_ <=> Int128{0};
}

}  // namespace lipscope

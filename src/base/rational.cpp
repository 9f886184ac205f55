// SPDX-License-Identifier: Apache-2.0
#include "base/rational.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/checkpoint.h"

namespace lipscope {

Rational::Rational(BigInteger numerator, BigInteger denominator, std::int64_t exponent)
    : numerator_(std::move(numerator)), denominator_(std::move(denominator)), exponent_(exponent) {
  // A common divisor takes about the product of the lengths.
  constexpr double kWork = 200, kWorkPerWords = 4;
  const auto words = [](const BigInteger& x) { return 1 + static_cast<double>(x.bits()) / 32; };
  charge(kWork + kWorkPerWords * words(numerator_) * words(denominator_));
  if (numerator_.is_zero()) {
    denominator_ = 1;
    exponent_ = 0;
    return;
  }
  if (denominator_.negative()) {
    numerator_ = -numerator_;
    denominator_ = -denominator_;
  }
  const std::int64_t above = numerator_.trailing_zeros(), below = denominator_.trailing_zeros();
  numerator_ = numerator_ >> above;
  denominator_ = denominator_ >> below;
  exponent_ += above - below;
  if (denominator_ == 1) return;
  const BigInteger common = gcd(numerator_, denominator_);
  if (common == 1) return;
  numerator_ = BigInteger::divide(numerator_, common).quotient;
  denominator_ = BigInteger::divide(denominator_, common).quotient;
}

Rational::Rational(BigInteger whole) : Rational(std::move(whole), 1, 0) {}

Rational::Rational(double x) {
  LIPSCOPE_CHECK(std::isfinite(x));
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  *this = Rational(static_cast<std::int64_t>(std::ldexp(fraction, 53)), 1, exponent - 53);
}

std::int64_t Rational::bits() const noexcept {
  return numerator_.bits() + denominator_.bits() + std::abs(exponent_);
}

bool Rational::is_integer() const noexcept { return denominator_ == 1 && exponent_ >= 0; }

BigInteger Rational::floor() const {
  if (exponent_ >= 0) return BigInteger::divide(numerator_ << exponent_, denominator_).quotient;
  return BigInteger::divide(numerator_, denominator_ << -exponent_).quotient;
}

Interval Rational::hull() const {
  if (sign() == 0) return {0, 0};
  // A quotient of some 64 bits and the sign of what is left; the size lies in
  // [quotient, quotient + 1] 2^scale.
  const std::int64_t drop = numerator_.bits() - denominator_.bits() - 64;
  const BigInteger size = numerator_.negative() ? -numerator_ : numerator_;
  auto [quotient, rest] = drop < 0 ? BigInteger::divide(size << -drop, denominator_)
                                   : BigInteger::divide(size, denominator_ << drop);
  std::int64_t scale = drop + exponent_;
  // A double has 53 bits, and none below 2^-1074.
  const std::int64_t cut =
      std::max<std::int64_t>({0, quotient.bits() - 53, std::min<std::int64_t>(-1074 - scale, 70)});
  const BigInteger kept = quotient >> cut;
  const bool exact = rest.is_zero() && (kept << cut) == quotient;
  scale += cut;
  const auto at = [&](const BigInteger& q) {
    // Beyond the range of int nothing but 0 and infinity is left.
    const auto by = static_cast<int>(std::clamp<std::int64_t>(scale, -5000, 5000));
    return std::ldexp(static_cast<double>(q.low_bits()), by);
  };
  Interval found{at(kept), exact ? at(kept) : at(kept + 1)};
  if (found.lo == kInf) found.lo = kMaxDouble;
  // Sizes below the smallest double.
  if (found.hi == 0) found.hi = kMinSubnormal;
  return numerator_.negative() ? -found : found;
}

Rational Rational::operator-() const {
  Rational negated = *this;
  negated.numerator_ = -numerator_;
  return negated;
}

Rational operator+(const Rational& a, const Rational& b) {
  if (a.sign() == 0) return b;
  if (b.sign() == 0) return a;
  const std::int64_t low = std::min(a.exponent_, b.exponent_);
  const BigInteger x = a.numerator_ << (a.exponent_ - low), y = b.numerator_ << (b.exponent_ - low);
  if (a.denominator_ == b.denominator_) return {x + y, a.denominator_, low};
  return {x * b.denominator_ + y * a.denominator_, a.denominator_ * b.denominator_, low};
}

Rational operator*(const Rational& a, const Rational& b) {
  return {a.numerator_ * b.numerator_, a.denominator_ * b.denominator_, a.exponent_ + b.exponent_};
}

Rational operator/(const Rational& a, const Rational& b) {
  LIPSCOPE_CHECK(b.sign() != 0);
  return {a.numerator_ * b.denominator_, a.denominator_ * b.numerator_, a.exponent_ - b.exponent_};
}

RationalInterval::RationalInterval(Rational x) : RationalInterval(x, x) {}

RationalInterval::RationalInterval(Rational lower, Rational upper)
    : known_(lower.bits() <= kMostBits && upper.bits() <= kMostBits) {
  if (!known_) return;
  lower_ = std::move(lower);
  upper_ = std::move(upper);
}

RationalInterval::RationalInterval(const Interval& x) : known_(is_bounded(x)) {
  if (!known_) return;
  lower_ = Rational(x.lo);
  upper_ = x.lo == x.hi ? lower_ : Rational(x.hi);
}

RationalInterval RationalInterval::unknown() { return RationalInterval(kEntire); }

Interval RationalInterval::hull() const {
  if (!known_) return kEntire;
  if (lower_ == upper_) return lower_.hull();
  return {lower_.hull().lo, upper_.hull().hi};
}

RationalInterval operator-(const RationalInterval& x) {
  if (!x.known()) return x;
  return {-x.upper(), -x.lower()};
}

RationalInterval operator+(const RationalInterval& x, const RationalInterval& y) {
  if (!x.known() || !y.known()) return RationalInterval::unknown();
  if (x.number() && y.number()) return x.lower() + y.lower();
  return {x.lower() + y.lower(), x.upper() + y.upper()};
}

RationalInterval operator-(const RationalInterval& x, const RationalInterval& y) { return x + -y; }

RationalInterval operator*(const RationalInterval& x, const RationalInterval& y) {
  // Nothing is known of numbers that are finite all the same.
  if (x.is(Rational()) || y.is(Rational())) return Rational();
  if (!x.known() || !y.known()) return RationalInterval::unknown();
  if (x.number() && y.number()) return x.lower() * y.lower();
  const Rational ends[] = {x.lower() * y.lower(), x.lower() * y.upper(), x.upper() * y.lower(),
                           x.upper() * y.upper()};
  return {*std::ranges::min_element(ends), *std::ranges::max_element(ends)};
}

RationalInterval operator/(const RationalInterval& x, const RationalInterval& y) {
  if (!y.known() || y.lower().sign() * y.upper().sign() <= 0) return RationalInterval::unknown();
  if (y.number()) return x * RationalInterval(Rational(BigInteger(1)) / y.lower());
  const Rational one(BigInteger(1));
  return x * RationalInterval(one / y.upper(), one / y.lower());
}

RationalInterval max(const RationalInterval& x, const RationalInterval& y) {
  if (!x.known() || !y.known()) return RationalInterval::unknown();
  return {std::max(x.lower(), y.lower()), std::max(x.upper(), y.upper())};
}
RationalInterval min(const RationalInterval& x, const RationalInterval& y) { return -max(-x, -y); }
RationalInterval abs(const RationalInterval& x) {
  if (!x.known() || x.lower().sign() >= 0) return x;
  if (x.upper().sign() <= 0) return -x;
  return {Rational(), std::max(-x.lower(), x.upper())};
}

Rational abs(const Rational& x) { return x.sign() < 0 ? -x : x; }
BigInteger ceil(const Rational& x) { return -(-x).floor(); }
BigInteger trunc(const Rational& x) { return x.sign() < 0 ? ceil(x) : x.floor(); }
BigInteger nearest_even(const Rational& x) {
  const Rational half(0.5);
  const BigInteger up = (x + half).floor();
  const bool tie = Rational(up) - x == half;
  return tie && up.odd() ? up - 1 : up;
}

}  // namespace lipscope

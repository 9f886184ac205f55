// SPDX-License-Identifier: Apache-2.0
// Rational numbers, and intervals of them: arithmetic without rounding, for decisions that must not
// depend on it.
//
//   const RationalInterval third = RationalInterval(1.0) / RationalInterval(3.0);
//   (third * RationalInterval(3.0)).is(Rational(1))   // true
//
// Thread safety: values.
#pragma once

#include <compare>
#include <concepts>
#include <optional>

#include "base/big_integer.h"
#include "base/interval.h"

namespace lipscope {

// In lowest terms: numerator / denominator * 2^exponent, both of them odd, the denominator
// positive; 0 is 0 / 1 * 2^0.
class Rational {
 public:
  Rational() = default;
  Rational(BigInteger whole);  // NOLINT: as natural as an integer
  template <std::integral T>
  Rational(T whole) : Rational(BigInteger(static_cast<std::int64_t>(whole))) {}  // NOLINT
  // A finite double is a rational number.
  explicit Rational(double x);

  [[nodiscard]] int sign() const noexcept {
    return numerator_.is_zero() ? 0 : numerator_.negative() ? -1 : 1;
  }
  // What the number takes to write down.
  [[nodiscard]] std::int64_t bits() const noexcept;
  // The largest integer that is not above it.
  [[nodiscard]] BigInteger floor() const;
  [[nodiscard]] bool is_integer() const noexcept;
  // The doubles around it: the same twice where it is one.
  [[nodiscard]] Interval hull() const;

  [[nodiscard]] Rational operator-() const;
  friend Rational operator+(const Rational& a, const Rational& b);
  friend Rational operator-(const Rational& a, const Rational& b) { return a + -b; }
  friend Rational operator*(const Rational& a, const Rational& b);
  // b != 0.
  friend Rational operator/(const Rational& a, const Rational& b);
  friend bool operator==(const Rational&, const Rational&) = default;
  friend std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
    return (a - b).sign() <=> 0;
  }

 private:
  Rational(BigInteger numerator, BigInteger denominator, std::int64_t exponent);
  BigInteger numerator_, denominator_ = 1;
  std::int64_t exponent_ = 0;
};

// All numbers between two rational ones, or a number of which nothing is known. Numbers that take
// too long to write down become ones of which nothing is known.
class RationalInterval {
 public:
  static constexpr std::int64_t kMostBits = 1 << 14;

  RationalInterval() : RationalInterval(Rational()) {}
  RationalInterval(Rational x);  // NOLINT: as natural as a number
  RationalInterval(Rational lower, Rational upper);
  // An infinite end makes it unknown.
  explicit RationalInterval(const Interval& x);
  explicit RationalInterval(double x) : RationalInterval(point(x)) {}
  [[nodiscard]] static RationalInterval unknown();

  [[nodiscard]] bool known() const noexcept { return known_; }
  // Of a known one.
  [[nodiscard]] const Rational& lower() const noexcept { return lower_; }
  [[nodiscard]] const Rational& upper() const noexcept { return upper_; }
  // The number where it is one; null otherwise.
  [[nodiscard]] const Rational* number() const noexcept {
    return known_ && lower_ == upper_ ? &lower_ : nullptr;
  }
  [[nodiscard]] bool is(const Rational& x) const noexcept {
    return number() != nullptr && *number() == x;
  }
  // Outward.
  [[nodiscard]] Interval hull() const;

 private:
  bool known_ = true;
  Rational lower_, upper_;
};

[[nodiscard]] RationalInterval operator-(const RationalInterval& x);
[[nodiscard]] RationalInterval operator+(const RationalInterval& x, const RationalInterval& y);
[[nodiscard]] RationalInterval operator-(const RationalInterval& x, const RationalInterval& y);
[[nodiscard]] RationalInterval operator*(const RationalInterval& x, const RationalInterval& y);
// Unknown where the divisor may be 0.
[[nodiscard]] RationalInterval operator/(const RationalInterval& x, const RationalInterval& y);

// Of functions that never fall: f at both ends.
template <class F>
[[nodiscard]] RationalInterval never_falling(const RationalInterval& x, F&& f) {
  if (!x.known()) return x;
  return {f(x.lower()), f(x.upper())};
}

[[nodiscard]] RationalInterval max(const RationalInterval& x, const RationalInterval& y);
[[nodiscard]] RationalInterval min(const RationalInterval& x, const RationalInterval& y);
[[nodiscard]] RationalInterval abs(const RationalInterval& x);

// The whole numbers a number is rounded to.
[[nodiscard]] Rational abs(const Rational& x);
[[nodiscard]] BigInteger ceil(const Rational& x);
[[nodiscard]] BigInteger trunc(const Rational& x);
[[nodiscard]] BigInteger nearest_even(const Rational& x);

}  // namespace lipscope

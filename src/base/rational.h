// SPDX-License-Identifier: Apache-2.0
// Exact fractions of 128-bit integers, for the few places where a file's numbers decide something
// (which entry a coordinate falls on) and no rounding may have a say.
//
//   const Rational x = (Rational(2 * i + 1) / Rational(scale) - 1) / 2;
//   const Index below = x.floor();
//
// A result with more digits throws Error(kUnsupported). Thread safety: pure functions.
#pragma once

#include <compare>
#include <cstdint>

#include "base/rounding_basic.h"

namespace lipscope {

class Rational {
 public:
  __extension__ typedef __int128 Int128;

  Rational(std::int64_t n = 0) : over_(n) {}  // NOLINT: as natural as an integer
  Rational(int n) : over_(n) {}               // NOLINT
  // Every finite double is a fraction.
  explicit Rational(double x);

  [[nodiscard]] std::int64_t floor() const;
  [[nodiscard]] std::int64_t ceil() const { return -(-*this).floor(); }
  // The doubles on both sides; one double where the fraction is one. Within a few units in the last
  // place where numerator or denominator have more digits than a double.
  [[nodiscard]] Interval enclosed() const;

  [[nodiscard]] Rational operator-() const;
  [[nodiscard]] Rational operator+(const Rational& y) const;
  [[nodiscard]] Rational operator-(const Rational& y) const { return *this + -y; }
  [[nodiscard]] Rational operator*(const Rational& y) const;
  // y is not 0.
  [[nodiscard]] Rational operator/(const Rational& y) const;
  [[nodiscard]] std::strong_ordering operator<=>(const Rational& y) const;
  [[nodiscard]] bool operator==(const Rational&) const = default;

 private:
  Rational(Int128 over, Int128 under);  // brings it to lowest terms

  Int128 over_ = 0, under_ = 1;  // in lowest terms, under_ > 0
};

[[nodiscard]] inline Rational abs(const Rational& x) { return x < 0 ? -x : x; }

}  // namespace lipscope

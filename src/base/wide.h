// SPDX-License-Identifier: Apache-2.0
// Real numbers known to some 240 bits: an integer multiple of 2^-256 below 2^63 in size, and a
// distance within which the number lies [rounding-19].
//
//   const Wide third = Wide(1) / Wide(3);
//   const Interval around = hull(third);   // doubles on both sides
//
// A result that does not fit, and any function where it has no value, is a number of which nothing
// is known: its distance is infinite. Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/rounding.h"

namespace lipscope {

class Wide {
 public:
  // Two's complement, the lowest word first; four words behind the point.
  using Words = std::array<std::uint64_t, 5>;
  static constexpr double kUnit = 0x1p-256;

  Wide() = default;
  // Exact, but for bits below the unit. Nothing is known of infinities and NaN.
  Wide(double x);  // NOLINT: as natural as a double
  Wide(const Words& middle, double off) : words_(middle), off_(off) {}
  // All numbers of an interval.
  [[nodiscard]] static Wide around(const Interval& x);
  [[nodiscard]] static Wide unknown();

  [[nodiscard]] const Words& middle() const noexcept { return words_; }
  [[nodiscard]] double off() const noexcept { return off_; }
  [[nodiscard]] bool known() const noexcept { return off_ < kInf; }
  [[nodiscard]] bool is_zero() const noexcept { return off_ == 0 && words_ == Words{}; }
  [[nodiscard]] bool negative() const noexcept { return (words_[4] >> 63) != 0; }
  // Of the middle: a double near it, and one that its size does not exceed.
  [[nodiscard]] double near() const;
  [[nodiscard]] double size_up() const;
  // The same middle, a distance larger by this.
  [[nodiscard]] Wide widened(double by) const { return {words_, add_up(off_, by)}; }

 private:
  Words words_ = {};
  double off_ = 0;
};

[[nodiscard]] Interval hull(const Wide& x);
[[nodiscard]] Wide operator-(const Wide& x);
[[nodiscard]] Wide operator+(const Wide& x, const Wide& y);
[[nodiscard]] Wide operator-(const Wide& x, const Wide& y);
[[nodiscard]] Wide operator*(const Wide& x, const Wide& y);
[[nodiscard]] Wide operator/(const Wide& x, const Wide& y);
inline Wide& operator+=(Wide& x, const Wide& y) { return x = x + y; }
inline Wide& operator-=(Wide& x, const Wide& y) { return x = x - y; }
inline Wide& operator*=(Wide& x, const Wide& y) { return x = x * y; }

// x / n, n > 0.
[[nodiscard]] Wide over(const Wide& x, std::uint64_t n);
// x 2^n.
[[nodiscard]] Wide scaled(const Wide& x, int n);
[[nodiscard]] Wide sqr(const Wide& x);
// 1 / sqrt(x).
[[nodiscard]] Wide inverse_sqrt(const Wide& x);
[[nodiscard]] Wide sqrt(const Wide& x);
[[nodiscard]] Wide exp(const Wide& x);
[[nodiscard]] Wide tanh(const Wide& x);
[[nodiscard]] Wide sigmoid(const Wide& x);
[[nodiscard]] Wide sin(const Wide& x);
[[nodiscard]] Wide cos(const Wide& x);
[[nodiscard]] const Wide& wide_pi();

// Of the normal distribution: its density and the share below x.
struct NormalShare {
  Wide density, below;
};
[[nodiscard]] NormalShare normal_share(const Wide& x);

// The middle as 16 digits to the base 2^20 between -2^19 and 2^19, the lowest first, `stride`
// apart: the sum of digit i times 2^(20 i - 256).
inline constexpr std::size_t kWideDigits = 16;
void to_digits(const Wide& x, double* digits, std::size_t stride);
// The sum of sums[s] 2^(20 s - 512), s = 0 ... 30, |sums[s]| < 2^62, within a unit and `off`.
[[nodiscard]] Wide from_digit_sums(std::span<const std::int64_t, 2 * kWideDigits - 1> sums,
                                   double off);

// A number and its derivative in some direction.
struct WideDual {
  Wide value, tangent;
};
inline WideDual operator-(const WideDual& x) { return {-x.value, -x.tangent}; }
inline WideDual operator+(const WideDual& x, const WideDual& y) {
  return {x.value + y.value, x.tangent + y.tangent};
}
inline WideDual operator-(const WideDual& x, const WideDual& y) {
  return {x.value - y.value, x.tangent - y.tangent};
}
inline WideDual operator*(const WideDual& x, const WideDual& y) {
  return {x.value * y.value, x.tangent * y.value + x.value * y.tangent};
}
inline WideDual operator/(const WideDual& x, const WideDual& y) {
  const Wide quotient = x.value / y.value;
  return {quotient, (x.tangent - quotient * y.tangent) / y.value};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "base/wide.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lipscope {
namespace {

using Words = Wide::Words;
__extension__ typedef unsigned __int128 Long;
constexpr std::size_t kWords = 5, kFraction = 4;

bool is_negative(const Words& x) { return (x[kWords - 1] >> 63) != 0; }

// Without regard to overflow.
Words sum_of(const Words& x, const Words& y) {
  Words z;
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < kWords; ++i) {
    const Long s = Long{x[i]} + y[i] + carry;
    z[i] = static_cast<std::uint64_t>(s);
    carry = static_cast<std::uint64_t>(s >> 64);
  }
  return z;
}

Words negated(const Words& x) {
  Words z;
  std::uint64_t carry = 1;
  for (std::size_t i = 0; i < kWords; ++i) {
    z[i] = ~x[i] + carry;
    carry = carry != 0 && z[i] == 0 ? 1 : 0;
  }
  return z;
}

Words size_of(const Words& x) { return is_negative(x) ? negated(x) : x; }

// Towards zero; false when it does not fit. Both sizes.
bool product_of(const Words& x, const Words& y, Words& z) {
  std::array<std::uint64_t, 2 * kWords> all = {};
  const std::size_t most = x[kFraction] == 0 ? kFraction : kWords;
  for (std::size_t i = 0; i < most; ++i) {
    std::uint64_t carry = 0;
#pragma GCC unroll 5
    for (std::size_t j = 0; j < kWords; ++j) {
      const Long t = Long{x[i]} * y[j] + all[i + j] + carry;
      all[i + j] = static_cast<std::uint64_t>(t);
      carry = static_cast<std::uint64_t>(t >> 64);
    }
    all[i + kWords] = carry;
  }
  for (std::size_t i = 0; i < kWords; ++i) z[i] = all[i + kFraction];
  return all[kWords + kFraction] == 0 && !is_negative(z);
}

}  // namespace

Wide Wide::unknown() { return {Words{}, kInf}; }

Wide::Wide(double x) {
  if (x == 0) return;
  if (!(std::fabs(x) < 0x1p62)) {
    *this = unknown();
    return;
  }
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(x), &exponent);
  auto bits = static_cast<std::uint64_t>(std::ldexp(fraction, 53));  // x = bits 2^(exponent - 53)
  int shift = exponent - 53 + 256;
  if (shift < 0) {
    const std::uint64_t kept = shift > -64 ? bits >> -shift : 0;
    if (shift <= -64 || kept << -shift != bits) off_ = kUnit;
    bits = kept;
    shift = 0;
  }
  const auto word = static_cast<std::size_t>(shift / 64), by = static_cast<std::size_t>(shift % 64);
  words_[word] = bits << by;
  if (by > 0 && word + 1 < kWords) words_[word + 1] = bits >> (64 - by);
  if (x < 0) words_ = negated(words_);
}

Wide Wide::around(const Interval& x) {
  if (!(std::isfinite(x.lo) && std::isfinite(x.hi))) return unknown();
  const double middle = 0.5 * x.lo + 0.5 * x.hi;
  return Wide(middle).widened(std::max({sub_up(x.hi, middle), sub_up(middle, x.lo), 0.0}));
}

double Wide::near() const {
  const Words size = size_of(words_);
  double sum = 0;
  for (std::size_t i = kWords; i-- > 0;) sum = sum * 0x1p64 + static_cast<double>(size[i]);
  return (negative() ? -sum : sum) * kUnit;
}

// The highest 53 bits, and one more in the last of them.
double Wide::size_up() const {
  const Words size = size_of(words_);
  std::size_t top = kWords;
  while (top > 0 && size[top - 1] == 0) --top;
  if (top == 0) return 0;
  const int empty = std::countl_zero(size[top - 1]);
  std::uint64_t bits = size[top - 1] << empty;
  if (empty > 0 && top > 1) bits |= size[top - 2] >> (64 - empty);
  const int exponent = static_cast<int>(64 * (top - 1)) - empty + 11 - 256;
  const auto scale = std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
  return static_cast<double>(static_cast<std::int64_t>((bits >> 11) + 1)) * scale;
}

Interval hull(const Wide& x) {
  if (!x.known()) return {-kInf, kInf};
  const double middle = x.near();
  // At most ten roundings are in the sum of near(), each of a relative 2^-53.
  const double far = add_up(x.off(), mul_up(std::fabs(middle), 0x1p-48));
  return {sub_down(middle, far), add_up(middle, far)};
}

// The lowest number has no opposite.
Wide operator-(const Wide& x) {
  const Words z = negated(x.middle());
  return is_negative(z) && x.negative() ? Wide::unknown() : Wide(z, x.off());
}

Wide operator+(const Wide& x, const Wide& y) {
  const Words z = sum_of(x.middle(), y.middle());
  if (x.negative() == y.negative() && is_negative(z) != x.negative()) return Wide::unknown();
  return {z, add_up(x.off(), y.off())};
}
Wide operator-(const Wide& x, const Wide& y) { return x + -y; }

Wide operator*(const Wide& x, const Wide& y) {
  if (!x.known() || !y.known()) return Wide::unknown();
  if (x.is_zero() || y.is_zero()) return {};
  Words z;
  if (!product_of(size_of(x.middle()), size_of(y.middle()), z)) return Wide::unknown();
  double off = Wide::kUnit;
  if (x.off() > 0) off += x.off() * (y.size_up() + y.off());
  if (y.off() > 0) off += y.off() * x.size_up();
  off = ulps_up(off, 8);  // six roundings of what is not negative, and a unit is in it
  return {x.negative() != y.negative() ? negated(z) : z, off};
}
Wide sqr(const Wide& x) { return x * x; }

Wide over(const Wide& x, std::uint64_t n) {
  if (!x.known() || n == 0) return Wide::unknown();
  Words z = size_of(x.middle());
  std::uint64_t rest = 0;
  for (std::size_t i = kWords; i-- > 0;) {
    const Long t = (Long{rest} << 64) | z[i];
    z[i] = static_cast<std::uint64_t>(t / n);
    rest = static_cast<std::uint64_t>(t % n);
  }
  const double lost = rest == 0 ? 0 : Wide::kUnit;
  const double off = x.off() == 0 ? 0 : div_up(x.off(), std::nextafter(static_cast<double>(n), 0));
  return {x.negative() ? negated(z) : z, add_up(off, lost)};
}

Wide scaled(const Wide& x, int n) {
  if (!x.known()) return x;
  const Words from = size_of(x.middle());
  Words z = {};
  bool lost = false;
  // Bit b of the result is bit b - n.
  const int words = n >= 0 ? n / 64 : -((-n + 63) / 64), bits = n - 64 * words;
  for (int i = 0; i < static_cast<int>(kWords); ++i) {
    const auto put = [&](int to, std::uint64_t part) {
      if (part == 0) return true;
      if (to >= static_cast<int>(kWords)) return false;
      if (to < 0) lost = true;
      if (to >= 0) z[static_cast<std::size_t>(to)] |= part;
      return true;
    };
    const std::uint64_t word = from[static_cast<std::size_t>(i)];
    if (!put(i + words, word << bits)) return Wide::unknown();
    if (bits > 0 && !put(i + words + 1, word >> (64 - bits))) return Wide::unknown();
  }
  if (is_negative(z)) return Wide::unknown();
  const double off = x.off() == 0 ? 0 : mul_up(x.off(), std::ldexp(1.0, std::max(n, -700)));
  return {x.negative() ? negated(z) : z, add_up(off, lost ? Wide::kUnit : 0)};
}

// Newton's steps, then what is left of 1 - x y says how far y may be away.
Wide operator/(const Wide& x, const Wide& y) {
  const Interval at = hull(y);
  const double size = std::min(std::fabs(at.lo), std::fabs(at.hi));
  if (!x.known() || !(at.lo > 0 || at.hi < 0) || size < 0x1p-60) return Wide::unknown();
  if (x.is_zero()) return x;
  const Wide middle(y.middle(), 0);
  Wide inverse(1 / y.near());
  for (int step = 0; step < 3; ++step) {
    const Wide left = Wide(1) - middle * inverse;
    inverse = Wide((inverse + inverse * Wide(left.middle(), 0)).middle(), 0);
  }
  const Wide left = Wide(1) - y * inverse;
  const double off = div_up(add_up(left.size_up(), left.off()), size);
  return x * inverse.widened(off);
}

// |1 / sqrt(x) - y| = |1 - x y^2| / (sqrt(x) (1 + sqrt(x) y)), for every x of the interval.
Wide inverse_sqrt(const Wide& x) {
  const Interval at = hull(x);
  if (!x.known() || !(at.lo >= 0x1p-60)) return Wide::unknown();
  const Wide middle(x.middle(), 0);
  Wide inverse(1 / std::sqrt(x.near()));
  for (int step = 0; step < 3; ++step) {
    const Wide left = Wide(1) - middle * sqr(inverse);
    inverse = Wide((inverse + scaled(inverse * Wide(left.middle(), 0), -1)).middle(), 0);
  }
  const Wide left = Wide(1) - x * sqr(inverse);
  if (inverse.negative()) return Wide::unknown();
  return inverse.widened(div_up(add_up(left.size_up(), left.off()), sqrt_down(at.lo)));
}
Wide sqrt(const Wide& x) { return x.is_zero() ? Wide() : x * inverse_sqrt(x); }

void to_digits(const Wide& x, double* digits, std::size_t stride) {
  constexpr std::size_t kBits = 20;
  constexpr std::int64_t kBase = std::int64_t{1} << kBits;
  const Words& words = x.middle();
  std::int64_t carry = 0;
  for (std::size_t i = 0; i < kWideDigits; ++i) {
    const std::size_t word = kBits * i / 64, by = kBits * i % 64;
    std::uint64_t bits = words[word] >> by;
    if (by + kBits > 64) bits |= words[word + 1] << (64 - by);
    std::int64_t digit = static_cast<std::int64_t>(bits % kBase) + carry;
    carry = digit >= kBase / 2 ? 1 : 0;
    // The sign of the number is the sign of its highest digit.
    if (i + 1 == kWideDigits) carry = x.negative() ? 1 : 0;
    digit -= carry * kBase;
    digits[i * stride] = static_cast<double>(digit);
  }
}

Wide from_digit_sums(std::span<const std::int64_t, 2 * kWideDigits - 1> sums, double off) {
  constexpr int kBits = 20, kFirst = 13;  // sums[13] counts 16 units
  std::int64_t carry = 0;
  for (std::size_t s = 0; s + 1 < kFirst; ++s) carry = (sums[s] + carry) >> kBits;
  carry = (sums[kFirst - 1] + carry) >> 16;  // units
  Words z = {};
  z[0] = static_cast<std::uint64_t>(carry) & 15;
  carry >>= 4;
  std::size_t bit = 4;
  constexpr std::size_t kLast = kFirst + 15;
  for (std::size_t s = kFirst; s < kLast; ++s, bit += kBits) {
    const std::int64_t v = sums[s] + carry;
    const std::uint64_t digit = static_cast<std::uint64_t>(v) & ((std::uint64_t{1} << kBits) - 1);
    const std::size_t word = bit / 64, by = bit % 64;
    z[word] |= digit << by;
    if (by + kBits > 64) z[word + 1] |= digit >> (64 - by);
    carry = v >> kBits;
  }
  const std::int64_t top = sums[kLast] + carry;  // bits 304 to 319
  if (sums[kLast + 1] != 0 || sums[kLast + 2] != 0 || top < -(1 << 15) || top >= (1 << 15))
    return Wide::unknown();
  z[kWords - 1] |= static_cast<std::uint64_t>(top) << 48;
  return {z, add_up(off, Wide::kUnit)};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Integers of any size. Thread safety: values.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

namespace lipscope {

class BigInteger {
 public:
  BigInteger() = default;
  BigInteger(std::int64_t value);  // NOLINT: as natural as an integer
  [[nodiscard]] static BigInteger from_unsigned(std::uint64_t value);

  [[nodiscard]] bool is_zero() const noexcept { return words_.empty(); }
  [[nodiscard]] bool negative() const noexcept { return negative_; }
  [[nodiscard]] bool odd() const noexcept { return !words_.empty() && (words_[0] & 1) != 0; }
  // Of the size: bits without leading zeros, and zeros at its end (0 for 0).
  [[nodiscard]] std::int64_t bits() const noexcept;
  [[nodiscard]] std::int64_t trailing_zeros() const noexcept;
  // The lowest 64 bits in two's complement.
  [[nodiscard]] std::uint64_t low_bits() const noexcept;
  // Nothing where it does not fit.
  [[nodiscard]] std::optional<std::int64_t> to_int64() const;

  [[nodiscard]] BigInteger operator-() const;
  // The size is shifted; what falls off the end is lost.
  [[nodiscard]] BigInteger operator<<(std::int64_t by) const;
  [[nodiscard]] BigInteger operator>>(std::int64_t by) const;
  friend BigInteger operator+(const BigInteger& a, const BigInteger& b);
  friend BigInteger operator-(const BigInteger& a, const BigInteger& b) { return a + -b; }
  friend BigInteger operator*(const BigInteger& a, const BigInteger& b);
  friend bool operator==(const BigInteger&, const BigInteger&) = default;
  friend std::strong_ordering operator<=>(const BigInteger& a, const BigInteger& b);

  struct Division;
  // b != 0; the quotient is rounded down, the remainder has the sign of b.
  [[nodiscard]] static Division divide(const BigInteger& a, const BigInteger& b);

 private:
  using Words = std::vector<std::uint32_t>;  // the lowest first, no zeros at the end
  BigInteger(Words words, bool negative);
  [[nodiscard]] static int compare_sizes(const Words& a, const Words& b);

  Words words_;
  bool negative_ = false;
};

struct BigInteger::Division {
  BigInteger quotient, remainder;
};

// Of the sizes.
[[nodiscard]] BigInteger gcd(BigInteger a, BigInteger b);

}  // namespace lipscope

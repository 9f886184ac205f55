// SPDX-License-Identifier: Apache-2.0
#include "base/big_integer.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace lipscope {
namespace {

using BigWords = std::vector<std::uint32_t>;
constexpr int kWordBits = 32;

std::uint32_t low_word(std::uint64_t x) { return static_cast<std::uint32_t>(x); }

BigWords added(const BigWords& a, const BigWords& b) {
  const BigWords &longer = a.size() < b.size() ? b : a, &shorter = a.size() < b.size() ? a : b;
  BigWords sum(longer.size() + 1);
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < longer.size(); ++i) {
    carry += std::uint64_t{longer[i]} + (i < shorter.size() ? shorter[i] : 0);
    sum[i] = low_word(carry);
    carry >>= kWordBits;
  }
  sum.back() = low_word(carry);
  return sum;
}

// a >= b.
BigWords subtracted(const BigWords& a, const BigWords& b) {
  BigWords difference(a.size());
  std::uint64_t borrow = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::uint64_t take = (i < b.size() ? b[i] : 0) + borrow;
    borrow = a[i] < take ? 1 : 0;
    difference[i] = low_word(a[i] - take);
  }
  return difference;
}

}  // namespace

BigInteger::BigInteger(Words words, bool negative) : words_(std::move(words)) {
  while (!words_.empty() && words_.back() == 0) words_.pop_back();
  negative_ = negative && !words_.empty();
}

BigInteger::BigInteger(std::int64_t value)
    : BigInteger(from_unsigned(value < 0 ? -static_cast<std::uint64_t>(value)
                                         : static_cast<std::uint64_t>(value))) {
  negative_ = value < 0;
}

BigInteger BigInteger::from_unsigned(std::uint64_t value) {
  return {Words{low_word(value), low_word(value >> kWordBits)}, false};
}

std::int64_t BigInteger::bits() const noexcept {
  if (words_.empty()) return 0;
  return std::ssize(words_) * kWordBits - std::countl_zero(words_.back());
}

std::int64_t BigInteger::trailing_zeros() const noexcept {
  std::size_t i = 0;
  while (i < words_.size() && words_[i] == 0) ++i;
  if (i == words_.size()) return 0;
  return static_cast<std::int64_t>(i) * kWordBits + std::countr_zero(words_[i]);
}

std::uint64_t BigInteger::low_bits() const noexcept {
  std::uint64_t size = words_.empty() ? 0 : words_[0];
  if (words_.size() > 1) size |= std::uint64_t{words_[1]} << kWordBits;
  return negative_ ? -size : size;
}

std::optional<std::int64_t> BigInteger::to_int64() const {
  if (bits() > 63) return std::nullopt;
  return static_cast<std::int64_t>(low_bits());
}

BigInteger BigInteger::operator-() const { return {words_, !negative_}; }

BigInteger BigInteger::operator<<(std::int64_t by) const {
  LIPSCOPE_CHECK(by >= 0);
  if (by == 0 || words_.empty()) return *this;
  const auto whole = static_cast<std::size_t>(by / kWordBits);
  const int rest = static_cast<int>(by % kWordBits);
  Words moved(words_.size() + whole + 1);
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const std::uint64_t both = std::uint64_t{words_[i]} << rest;
    moved[i + whole] |= low_word(both);
    moved[i + whole + 1] = low_word(both >> kWordBits);
  }
  return {std::move(moved), negative_};
}

BigInteger BigInteger::operator>>(std::int64_t by) const {
  LIPSCOPE_CHECK(by >= 0);
  if (by >= bits()) return {};
  const auto whole = static_cast<std::size_t>(by / kWordBits);
  const int rest = static_cast<int>(by % kWordBits);
  Words moved(words_.size() - whole);
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const std::uint64_t above = i + whole + 1 < words_.size() ? words_[i + whole + 1] : 0;
    moved[i] = low_word(((above << kWordBits) | words_[i + whole]) >> rest);
  }
  return {std::move(moved), negative_};
}

int BigInteger::compare_sizes(const Words& a, const Words& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (std::size_t i = a.size(); i-- > 0;) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

BigInteger operator+(const BigInteger& a, const BigInteger& b) {
  if (a.negative_ == b.negative_) return {added(a.words_, b.words_), a.negative_};
  if (BigInteger::compare_sizes(a.words_, b.words_) >= 0)
    return {subtracted(a.words_, b.words_), a.negative_};
  return {subtracted(b.words_, a.words_), b.negative_};
}

BigInteger operator*(const BigInteger& a, const BigInteger& b) {
  BigInteger::Words product(a.words_.size() + b.words_.size());
  for (std::size_t i = 0; i < a.words_.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t j = 0; j < b.words_.size(); ++j) {
      carry += std::uint64_t{a.words_[i]} * b.words_[j] + product[i + j];
      product[i + j] = low_word(carry);
      carry >>= kWordBits;
    }
    product[i + b.words_.size()] = low_word(carry);
  }
  return {std::move(product), a.negative_ != b.negative_};
}

std::strong_ordering operator<=>(const BigInteger& a, const BigInteger& b) {
  if (a.negative_ != b.negative_)
    return a.negative_ ? std::strong_ordering::less : std::strong_ordering::greater;
  const int sizes = BigInteger::compare_sizes(a.words_, b.words_);
  return (a.negative_ ? -sizes : sizes) <=> 0;
}

// Knuth's algorithm D on the sizes, in which each digit of the quotient is guessed from the leading
// two of the divisor and corrected.
BigInteger::Division BigInteger::divide(const BigInteger& a, const BigInteger& b) {
  LIPSCOPE_CHECK(!b.is_zero());
  Division found;
  if (compare_sizes(a.words_, b.words_) < 0) {
    found.remainder = {a.words_, false};
  } else {
    const int shift = std::countl_zero(b.words_.back());
    const Words divisor = (BigInteger(b.words_, false) << shift).words_;
    Words rest = (BigInteger(a.words_, false) << shift).words_;
    rest.resize(a.words_.size() + 1);
    const std::size_t n = divisor.size();
    const std::uint64_t top = divisor[n - 1], next = n > 1 ? divisor[n - 2] : 0;
    Words quotient(rest.size() - n);
    for (std::size_t j = quotient.size(); j-- > 0;) {
      const std::uint64_t lead = (std::uint64_t{rest[j + n]} << kWordBits) | rest[j + n - 1];
      std::uint64_t digit = lead / top, over = lead % top;
      const std::uint64_t below = n > 1 ? rest[j + n - 2] : 0;
      while (digit > UINT32_MAX || digit * next > ((over << kWordBits) | below)) {
        --digit;
        over += top;
        if (over > UINT32_MAX) break;
      }
      std::uint64_t borrow = 0, carry = 0;
      for (std::size_t i = 0; i <= n; ++i) {
        carry += digit * (i < n ? divisor[i] : 0);
        const std::uint64_t take = low_word(carry) + borrow;
        carry >>= kWordBits;
        borrow = rest[i + j] < take ? 1 : 0;
        rest[i + j] = low_word(rest[i + j] - take);
      }
      if (borrow != 0) {  // one too many
        --digit;
        std::uint64_t back = 0;
        for (std::size_t i = 0; i <= n; ++i) {
          back += std::uint64_t{rest[i + j]} + (i < n ? divisor[i] : 0);
          rest[i + j] = low_word(back);
          back >>= kWordBits;
        }
      }
      quotient[j] = low_word(digit);
    }
    found.quotient = {std::move(quotient), false};
    found.remainder = BigInteger(std::move(rest), false) >> shift;
  }
  // From the sizes to numbers with signs, rounding down.
  if (a.negative_ != b.negative_) {
    found.quotient = -found.quotient;
    if (!found.remainder.is_zero()) {
      found.quotient = found.quotient - 1;
      found.remainder = BigInteger(b.words_, false) - found.remainder;
    }
  }
  if (b.negative_) found.remainder = -found.remainder;
  return found;
}

BigInteger gcd(BigInteger a, BigInteger b) {
  while (!b.is_zero()) {
    BigInteger rest = BigInteger::divide(a, b).remainder;
    a = std::move(b);
    b = std::move(rest);
  }
  return a.negative() ? -a : a;
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Arithmetic on integers held as int64: wrap-around instead of overflow, and uint64, which is held
// as the int64 with the same bits, ordered and divided as what it means. Results still have to be
// brought into narrower types by wrap_integer.
#pragma once

#include <bit>
#include <cmath>
#include <limits>

#include "lipscope/tensor.h"

namespace lipscope {

[[nodiscard]] constexpr std::uint64_t bits_of(Index a) { return static_cast<std::uint64_t>(a); }
[[nodiscard]] constexpr Index from_bits(std::uint64_t a) { return static_cast<Index>(a); }

[[nodiscard]] constexpr Index add_integers(Index a, Index b) {
  return from_bits(bits_of(a) + bits_of(b));
}
[[nodiscard]] constexpr Index subtract_integers(Index a, Index b) {
  return from_bits(bits_of(a) - bits_of(b));
}
[[nodiscard]] constexpr Index multiply_integers(Index a, Index b) {
  return from_bits(bits_of(a) * bits_of(b));
}

[[nodiscard]] constexpr bool is_unsigned(ElementType type) {
  return type >= ElementType::kUInt8 && type <= ElementType::kUInt64;
}
[[nodiscard]] constexpr bool integer_less(ElementType type, Index a, Index b) {
  return type == ElementType::kUInt64 ? bits_of(a) < bits_of(b) : a < b;
}
// Ordered as signed integers the way the values are ordered in their type.
[[nodiscard]] constexpr Index order_key(ElementType type, Index a) {
  return type == ElementType::kUInt64 ? from_bits(bits_of(a) ^ (std::uint64_t{1} << 63)) : a;
}
// Reals are ordered as they are.
[[nodiscard]] constexpr double order_key(ElementType, double a) { return a; }
[[nodiscard]] constexpr float order_key(ElementType, float a) { return a; }

// The integer a real number becomes under Cast.
[[nodiscard]] inline Index integer_from(ElementType type, double value) {
  return Tensor::scalar(value).cast(type).ints()[0];
}
[[nodiscard]] inline double integer_to_double(ElementType type, Index a) {
  return type == ElementType::kUInt64 ? static_cast<double>(bits_of(a)) : static_cast<double>(a);
}

// Quotient truncated towards zero. Division by zero, undefined in ONNX, gives 0.
[[nodiscard]] constexpr Index divide_integers(ElementType type, Index a, Index b) {
  if (b == 0) return 0;
  if (type == ElementType::kUInt64) return from_bits(bits_of(a) / bits_of(b));
  return b == -1 ? subtract_integers(0, a) : a / b;  // the smallest integer over -1 wraps
}
// Remainder of that quotient; it has the sign of a.
[[nodiscard]] constexpr Index remainder_integers(ElementType type, Index a, Index b) {
  return subtract_integers(a, multiply_integers(divide_integers(type, a, b), b));
}

[[nodiscard]] constexpr Index smallest_integer(ElementType type) {
  switch (type) {
    case ElementType::kInt8: return std::numeric_limits<std::int8_t>::min();
    case ElementType::kInt16: return std::numeric_limits<std::int16_t>::min();
    case ElementType::kInt32: return std::numeric_limits<std::int32_t>::min();
    case ElementType::kInt64: return std::numeric_limits<std::int64_t>::min();
    default: return 0;
  }
}
[[nodiscard]] constexpr Index largest_integer(ElementType type) {
  if (type == ElementType::kBool) return 1;
  if (type == ElementType::kUInt64) return -1;
  if (!is_unsigned(type)) return -1 - smallest_integer(type);
  return type == ElementType::kUInt8    ? std::numeric_limits<std::uint8_t>::max()
         : type == ElementType::kUInt16 ? std::numeric_limits<std::uint16_t>::max()
                                        : Index{std::numeric_limits<std::uint32_t>::max()};
}

}  // namespace lipscope

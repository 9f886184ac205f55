// SPDX-License-Identifier: Apache-2.0
#include "lipscope/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

template <class T>
const std::vector<T>& held(
    const std::variant<std::vector<double>, std::vector<float>, std::vector<Index>>& entries) {
  const auto* found = std::get_if<std::vector<T>>(&entries);
  LIPSCOPE_CHECK(found != nullptr);
  return *found;
}

void check_count(const Shape& shape, std::size_t count) {
  if (element_count(shape) != static_cast<Index>(count)) {
    throw Error(ErrorCode::kShape,
                fmt::format("shape {} does not hold {} entries", to_string(shape), count));
  }
}

// Nearest value with `mantissa_bits` stored bits and the exponent range of `min_exponent` (of the
// smallest normal) to `max_exponent`; ties to even; overflow to infinity.
double round_to_grid(double value, int mantissa_bits, int min_exponent, int max_exponent) {
  if (!std::isfinite(value) || value == 0) return value;
  const int exponent = std::max(std::ilogb(value), min_exponent);
  const double spacing = std::ldexp(1.0, exponent - mantissa_bits);
  const double rounded = std::nearbyint(value / spacing) * spacing;  // exact scaling; ties to even
  const double largest = std::ldexp(2.0 - std::ldexp(1.0, -mantissa_bits), max_exponent);
  if (std::abs(rounded) > largest) return std::copysign(HUGE_VAL, value);
  return rounded;
}

// Truncation towards zero; values outside int64 (undefined in ONNX) saturate, NaN becomes 0.
Index truncate(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<Index>::max();
  if (value < -0x1p63) return std::numeric_limits<Index>::min();
  return static_cast<Index>(value);
}

}  // namespace

std::string_view to_string(ElementType type) {
  static constexpr std::string_view kNames[] = {
      "float16", "bfloat16", "float32", "float64", "int8",   "int16", "int32",
      "int64",   "uint8",    "uint16",  "uint32",  "uint64", "bool"};
  return kNames[static_cast<std::size_t>(type)];
}

Index element_count(const Shape& shape) {
  Index count = 1;
  bool empty = false;
  for (const Index d : shape) {
    if (d < 0) throw Error(ErrorCode::kShape, "negative dimension in shape " + to_string(shape));
    if (d == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, d, &count)) {
      throw Error(ErrorCode::kShape, "too many entries in shape " + to_string(shape));
    }
  }
  return empty ? 0 : count;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Index wrap_integer(ElementType type, Index value) {
  switch (type) {
    case ElementType::kInt8: return static_cast<std::int8_t>(value);
    case ElementType::kInt16: return static_cast<std::int16_t>(value);
    case ElementType::kInt32: return static_cast<std::int32_t>(value);
    case ElementType::kUInt8: return static_cast<std::uint8_t>(value);
    case ElementType::kUInt16: return static_cast<std::uint16_t>(value);
    case ElementType::kUInt32: return static_cast<std::uint32_t>(value);
    case ElementType::kBool: return value != 0 ? 1 : 0;
    default: return value;
  }
}

double round_to(ElementType type, double value) {
  switch (type) {
    case ElementType::kFloat16: return round_to_grid(value, 10, -14, 15);
    case ElementType::kBFloat16: return round_to_grid(value, 7, -126, 127);
    case ElementType::kFloat32: return static_cast<double>(static_cast<float>(value));
    default: return value;
  }
}

Tensor::Tensor(ElementType type, Shape shape, std::vector<double> entries)
    : type_(type), shape_(std::move(shape)), size_(static_cast<Index>(entries.size())) {
  LIPSCOPE_CHECK(is_floating(type));
  check_count(shape_, entries.size());
  entries_ = std::make_shared<Entries>(std::move(entries));
}

Tensor::Tensor(ElementType type, Shape shape, std::vector<float> entries)
    : type_(type), shape_(std::move(shape)), size_(static_cast<Index>(entries.size())) {
  LIPSCOPE_CHECK(is_floating(type));
  check_count(shape_, entries.size());
  entries_ = std::make_shared<Entries>(std::move(entries));
}

Tensor::Tensor(ElementType type, Shape shape, std::vector<Index> entries)
    : type_(type), shape_(std::move(shape)), size_(static_cast<Index>(entries.size())) {
  LIPSCOPE_CHECK(!is_floating(type));
  check_count(shape_, entries.size());
  entries_ = std::make_shared<Entries>(std::move(entries));
}

Tensor Tensor::zeros(ElementType type, Shape shape, Precision precision) {
  const auto count = static_cast<std::size_t>(element_count(shape));
  switch (storage_of(type, precision)) {
    case Storage::kDouble: return {type, std::move(shape), std::vector<double>(count)};
    case Storage::kFloat: return {type, std::move(shape), std::vector<float>(count)};
    case Storage::kInt64: return {type, std::move(shape), std::vector<Index>(count)};
  }
  LIPSCOPE_CHECK(false);
}

Tensor Tensor::vector(std::vector<double> entries) {
  Shape shape{static_cast<Index>(entries.size())};
  return {ElementType::kFloat64, std::move(shape), std::move(entries)};
}

Tensor Tensor::integers(Shape shape, std::vector<Index> entries) {
  return {ElementType::kInt64, std::move(shape), std::move(entries)};
}

Tensor Tensor::scalar(double value) {
  return {ElementType::kFloat64, Shape{}, std::vector<double>{value}};
}

Tensor::Entries& Tensor::own() {
  if (entries_.use_count() > 1) entries_ = std::make_shared<Entries>(*entries_);
  return *entries_;
}

std::span<const double> Tensor::doubles() const { return held<double>(*entries_); }
std::span<const float> Tensor::floats() const { return held<float>(*entries_); }
std::span<const Index> Tensor::ints() const { return held<Index>(*entries_); }

std::span<double> Tensor::doubles() {
  return const_cast<std::vector<double>&>(held<double>(own()));
}
std::span<float> Tensor::floats() { return const_cast<std::vector<float>&>(held<float>(own())); }
std::span<Index> Tensor::ints() { return const_cast<std::vector<Index>&>(held<Index>(own())); }

const void* Tensor::data() const {
  return std::visit([](const auto& v) { return static_cast<const void*>(v.data()); }, *entries_);
}
void* Tensor::data() {
  return std::visit([](auto& v) { return static_cast<void*>(v.data()); }, own());
}

double Tensor::at(Index i) const {
  LIPSCOPE_CHECK(i >= 0 && i < size_);
  const auto k = static_cast<std::size_t>(i);
  if (storage() == Storage::kDouble) return doubles()[k];
  if (storage() == Storage::kFloat) return static_cast<double>(floats()[k]);
  const Index value = ints()[k];
  if (type_ == ElementType::kUInt64)
    return static_cast<double>(std::bit_cast<std::uint64_t>(value));
  return static_cast<double>(value);
}

Tensor Tensor::reshaped(Shape shape) const {
  check_count(shape, static_cast<std::size_t>(size_));
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

Tensor Tensor::with_precision(Precision precision) const {
  if (storage() == storage_of(type_, precision)) return *this;
  if (precision == Precision::kFloat32) {
    const auto from = doubles();
    return {type_, shape_, std::vector<float>(from.begin(), from.end())};
  }
  const auto from = floats();
  return {type_, shape_, std::vector<double>(from.begin(), from.end())};
}

Tensor Tensor::cast(ElementType type) const {
  if (type == type_) return *this;
  const auto count = static_cast<std::size_t>(size_);
  if (is_floating(type)) {
    if (storage() == Storage::kFloat) {
      Tensor result = *this;
      result.type_ = type;
      return result;
    }
    std::vector<double> entries(count);
    for (std::size_t i = 0; i < count; ++i) entries[i] = at(static_cast<Index>(i));
    return {type, shape_, std::move(entries)};
  }
  std::vector<Index> entries(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_floating(type_)) {
      entries[i] = wrap_integer(type, ints()[i]);
    } else if (type == ElementType::kBool) {
      entries[i] = at(static_cast<Index>(i)) != 0 ? 1 : 0;
    } else if (const double value = at(static_cast<Index>(i));
               type == ElementType::kUInt64 && value >= 0x1p63 && value < 0x1p64) {
      entries[i] = std::bit_cast<Index>(static_cast<std::uint64_t>(value));
    } else {
      entries[i] = wrap_integer(type, truncate(value));
    }
  }
  return {type, shape_, std::move(entries)};
}

}  // namespace lipscope

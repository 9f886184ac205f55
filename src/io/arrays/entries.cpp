// SPDX-License-Identifier: Apache-2.0
#include "io/arrays/entries.h"

#include <cmath>
#include <limits>

#include "base/check.h"

namespace lipscope {
namespace {

template <typename T, typename Value, typename Convert>
std::vector<Value> decode(Bytes data, std::endian order, Convert convert) {
  std::vector<Value> values(data.size() / sizeof(T));
  const std::byte* from = data.data();
  for (Value& value : values) {
    value = convert(load<T>(from, order));
    from += sizeof(T);
  }
  return values;
}

template <typename T>
std::vector<Index> decode_ints(Bytes data, std::endian order) {
  return decode<T, Index>(data, order, [](T value) { return static_cast<Index>(value); });
}

template <typename T>
std::vector<double> decode_floats(Bytes data, std::endian order) {
  return decode<T, double>(data, order, [](T value) { return static_cast<double>(value); });
}

// Walks the target in row-major order and the source with the strides of the first-index-fastest
// layout.
template <typename T>
std::vector<T> to_row_major(const std::vector<T>& source, const Shape& shape) {
  std::vector<T> target(source.size());
  std::vector<std::size_t> stride(shape.size(), 1);
  for (std::size_t d = 1; d < shape.size(); ++d) {
    stride[d] = stride[d - 1] * static_cast<std::size_t>(shape[d - 1]);
  }
  Shape index(shape.size(), 0);
  std::size_t from = 0;
  for (T& value : target) {
    value = source[from];
    for (std::size_t d = shape.size(); d-- > 0;) {
      from += stride[d];
      if (++index[d] < shape[d]) break;
      from -= stride[d] * static_cast<std::size_t>(shape[d]);
      index[d] = 0;
    }
  }
  return target;
}

template <typename T>
Tensor arrange(ElementType type, Shape shape, std::vector<T> values, Layout layout) {
  if (layout == Layout::kColumnMajor && shape.size() > 1) values = to_row_major(values, shape);
  return Tensor(type, std::move(shape), std::move(values));
}

// `value` is one of the values float16 has.
std::uint16_t float16_bits(double value) {
  const unsigned sign = std::signbit(value) ? 0x8000U : 0U;
  const double magnitude = std::fabs(value);
  unsigned bits = 0;
  if (std::isnan(value)) {
    bits = 0x7e00U;
  } else if (std::isinf(value)) {
    bits = 0x7c00U;
  } else if (magnitude < std::ldexp(1.0, -14)) {
    bits = static_cast<unsigned>(std::ldexp(magnitude, 24));
  } else {
    const int exponent = std::ilogb(magnitude);
    const double fraction = std::ldexp(magnitude, 10 - exponent) - 1024.0;
    bits = (static_cast<unsigned>(exponent + 15) << 10U) | static_cast<unsigned>(fraction);
  }
  return static_cast<std::uint16_t>(sign | bits);
}

template <typename T>
void append(std::vector<std::byte>& out, T value) {
  std::byte raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  if constexpr (std::endian::native != std::endian::little) std::reverse(raw, raw + sizeof(T));
  out.insert(out.end(), raw, raw + sizeof(T));
}

void append_float(std::vector<std::byte>& out, ElementType type, double value) {
  const double rounded = round_to(type, value);
  switch (type) {
    case ElementType::kFloat64: return append(out, value);
    case ElementType::kFloat32: return append(out, static_cast<float>(rounded));
    case ElementType::kFloat16: return append(out, float16_bits(rounded));
    default: {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(rounded));
      return append(out, static_cast<std::uint16_t>(bits >> 16U));
    }
  }
}

}  // namespace

std::size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
    case ElementType::kUInt8:
    case ElementType::kBool: return 1;
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
    case ElementType::kInt16:
    case ElementType::kUInt16: return 2;
    case ElementType::kFloat32:
    case ElementType::kInt32:
    case ElementType::kUInt32: return 4;
    case ElementType::kFloat64:
    case ElementType::kInt64:
    case ElementType::kUInt64: return 8;
  }
  LIPSCOPE_CHECK(false);
  return 0;
}

std::optional<std::uint64_t> packed_bytes(ElementType type, const Shape& shape) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<Index>::max());
  std::uint64_t bytes = element_bytes(type);
  bool empty = false;
  for (const Index dimension : shape) {
    if (dimension < 0) return std::nullopt;
    if (dimension == 0) {
      empty = true;
      continue;
    }
    const auto factor = static_cast<std::uint64_t>(dimension);
    if (bytes > kMax / factor) return std::nullopt;
    bytes *= factor;
  }
  return empty ? 0 : bytes;
}

void require_packed_bytes(ElementType type, const Shape& shape, std::uint64_t available,
                          std::string_view name) {
  const std::optional<std::uint64_t> claimed = packed_bytes(type, shape);
  if (!claimed) {
    bad_file(name, "the shape {} in its header is impossible; save the array again",
             printable(to_string(shape)));
  }
  if (*claimed > available) {
    bad_file(name,
             "truncated: the header says {} {}, {} bytes, but {} follow; copy or save the "
             "file again",
             to_string(type), printable(to_string(shape)), *claimed, available);
  }
  if (*claimed < available) {
    bad_file(name,
             "{} bytes too many: the header says {} {}, {} bytes, but {} follow; save one "
             "array per file",
             available - *claimed, to_string(type), printable(to_string(shape)), *claimed,
             available);
  }
}

Tensor decode_entries(Bytes data, ElementType type, Shape shape, std::endian order, Layout layout) {
  LIPSCOPE_CHECK(packed_bytes(type, shape) == data.size());
  const auto ints = [&](std::vector<Index> values) {
    return arrange(type, std::move(shape), std::move(values), layout);
  };
  const auto floats = [&](std::vector<double> values) {
    return arrange(type, std::move(shape), std::move(values), layout);
  };
  switch (type) {
    case ElementType::kFloat16:
      return floats(decode<std::uint16_t, double>(data, order, float16_value));
    case ElementType::kBFloat16:
      return floats(decode<std::uint16_t, double>(data, order, bfloat16_value));
    case ElementType::kFloat32: return floats(decode_floats<float>(data, order));
    case ElementType::kFloat64: return floats(decode_floats<double>(data, order));
    case ElementType::kInt8: return ints(decode_ints<std::int8_t>(data, order));
    case ElementType::kInt16: return ints(decode_ints<std::int16_t>(data, order));
    case ElementType::kInt32: return ints(decode_ints<std::int32_t>(data, order));
    case ElementType::kInt64: return ints(decode_ints<std::int64_t>(data, order));
    case ElementType::kUInt8: return ints(decode_ints<std::uint8_t>(data, order));
    case ElementType::kUInt16: return ints(decode_ints<std::uint16_t>(data, order));
    case ElementType::kUInt32: return ints(decode_ints<std::uint32_t>(data, order));
    case ElementType::kUInt64: return ints(decode_ints<std::uint64_t>(data, order));
    case ElementType::kBool:
      return ints(decode<std::uint8_t, Index>(
          data, order, [](std::uint8_t value) { return static_cast<Index>(value != 0); }));
  }
  LIPSCOPE_CHECK(false);
  return {};
}

std::vector<std::byte> encode_entries(const Tensor& tensor) {
  const std::size_t width = element_bytes(tensor.type());
  std::vector<std::byte> out;
  out.reserve(static_cast<std::size_t>(tensor.size()) * width);
  if (is_floating(tensor.type())) {
    for (Index i = 0; i < tensor.size(); ++i) append_float(out, tensor.type(), tensor.at(i));
    return out;
  }
  for (const Index value : tensor.ints()) {
    const Index wrapped = wrap_integer(tensor.type(), value);
    for (std::size_t k = 0; k < width; ++k) {
      out.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(wrapped) >> (8 * k)));
    }
  }
  return out;
}

double float16_value(std::uint16_t bits) {
  const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  if (exponent < 31) return sign * std::ldexp(1024 + fraction, exponent - 25);
  if (fraction != 0) return std::numeric_limits<double>::quiet_NaN();
  return sign * std::numeric_limits<double>::infinity();
}

double bfloat16_value(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U));
}

}  // namespace lipscope

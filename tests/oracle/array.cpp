// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/array.h"

#include <cmath>
#include <cstring>

namespace oracle {
namespace {

using T = onnx::TensorProto;

struct IntegerType {
  int bits;
  bool is_signed;
};
IntegerType integer_type(Type type) {
  switch (type) {
    case T::INT8: return {8, true};
    case T::INT16: return {16, true};
    case T::INT32: return {32, true};
    case T::INT64: return {64, true};
    case T::UINT8: return {8, false};
    case T::UINT16: return {16, false};
    case T::UINT32: return {32, false};
    case T::UINT64: return {64, false};
    default: throw Missing("element type " + std::to_string(type));
  }
}

// A small binary format, bits to number.
Number small_float(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
  const std::uint32_t mantissa = bits & ((1U << mantissa_bits) - 1);
  const auto exponent = static_cast<int>((bits >> mantissa_bits) & ((1U << exponent_bits) - 1));
  const int sign = ((bits >> (mantissa_bits + exponent_bits)) & 1) != 0 ? -1 : 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa == 0 ? Number::infinity(sign) : Number::nan();
  }
  const double whole = exponent == 0 ? mantissa : mantissa + (1U << mantissa_bits);
  return Number(sign * std::ldexp(whole, std::max(exponent, 1) - bias - mantissa_bits));
}

template <class Stored, class Make>
void read_raw(const std::string& raw, Array& array, Make&& make) {
  for (std::size_t i = 0; i < array.entries.size(); ++i) {
    Stored value{};
    if ((i + 1) * sizeof(Stored) > raw.size()) throw Undefined("too little raw data");
    std::memcpy(&value, raw.data() + i * sizeof(Stored), sizeof(Stored));
    array.entries[i] = make(value);
  }
}
template <class List, class Make>
void read_list(const List& list, Array& array, Make&& make) {
  if (static_cast<std::size_t>(list.size()) != array.entries.size()) {
    throw Undefined("number of entries");
  }
  for (int i = 0; i < list.size(); ++i) array.entries[static_cast<std::size_t>(i)] = make(list[i]);
}

Number half(std::uint32_t bits) { return small_float(bits, 5, 10); }
Number brain(std::uint32_t bits) { return small_float(bits, 8, 7); }

}  // namespace

Index count(const Dims& dims) {
  Index n = 1;
  for (const Index d : dims) n *= d;
  return n;
}
bool is_floating(Type type) {
  return type == T::FLOAT || type == T::DOUBLE || type == T::FLOAT16 || type == T::BFLOAT16;
}
std::string type_name(Type type) { return T::DataType_Name(static_cast<T::DataType>(type)); }

Number wrapped(Type type, const Number& value) {
  if (is_floating(type)) return value;
  if (type == T::BOOL) return Number(sign(value) != 0 ? 1 : 0);
  const auto [bits, is_signed] = integer_type(type);
  mpz_class modulus;
  mpz_ui_pow_ui(modulus.get_mpz_t(), 2, static_cast<unsigned long>(bits));
  mpz_class rest;
  mpz_fdiv_r(rest.get_mpz_t(), value.exact().get_num_mpz_t(), modulus.get_mpz_t());
  if (is_signed && rest * 2 >= modulus) rest -= modulus;
  return integer_number(rest);
}

int significant_bits(Type type) {
  switch (type) {
    case T::DOUBLE: return 53;
    case T::FLOAT: return 24;
    case T::FLOAT16: return 11;
    default: return 8;
  }
}
Number rounded(Type type, const Number& value) {
  switch (type) {
    case T::DOUBLE: return round_to_format(value, 53, -1074, 1024);
    case T::FLOAT: return round_to_format(value, 24, -149, 128);
    case T::FLOAT16: return round_to_format(value, 11, -24, 16);
    default: return round_to_format(value, 8, -133, 128);
  }
}

Array int64_array(Dims dims, const std::vector<Index>& entries) {
  Array array(T::INT64, std::move(dims));
  for (std::size_t i = 0; i < entries.size(); ++i) array.entries[i] = Number(entries[i]);
  return array;
}
std::vector<Index> integers(const Array& array) {
  std::vector<Index> list;
  for (const Number& e : array.entries) list.push_back(e.integer());
  return list;
}

Array read_tensor(const T& t) {
  Array array(t.data_type(), Dims(t.dims().begin(), t.dims().end()));
  const auto make_integer = [](auto v) { return Number(static_cast<Index>(v)); };
  const auto make_unsigned = [](auto v) {
    return Number::unsigned_integer(static_cast<std::uint64_t>(v));
  };
  const auto make_double = [](auto v) { return Number(static_cast<double>(v)); };
  const auto make_half = [](auto v) { return half(static_cast<std::uint16_t>(v)); };
  const auto make_brain = [](auto v) { return brain(static_cast<std::uint16_t>(v)); };
  const std::string& raw = t.raw_data();
  const bool is_raw = t.has_raw_data();
  switch (t.data_type()) {
    case T::FLOAT:
      is_raw ? read_raw<float>(raw, array, make_double)
             : read_list(t.float_data(), array, make_double);
      break;
    case T::DOUBLE:
      is_raw ? read_raw<double>(raw, array, make_double)
             : read_list(t.double_data(), array, make_double);
      break;
    case T::FLOAT16:
      is_raw ? read_raw<std::uint16_t>(raw, array, make_half)
             : read_list(t.int32_data(), array, make_half);
      break;
    case T::BFLOAT16:
      is_raw ? read_raw<std::uint16_t>(raw, array, make_brain)
             : read_list(t.int32_data(), array, make_brain);
      break;
    case T::INT64:
      is_raw ? read_raw<std::int64_t>(raw, array, make_integer)
             : read_list(t.int64_data(), array, make_integer);
      break;
    case T::INT32:
      is_raw ? read_raw<std::int32_t>(raw, array, make_integer)
             : read_list(t.int32_data(), array, make_integer);
      break;
    case T::INT16:
      is_raw ? read_raw<std::int16_t>(raw, array, make_integer)
             : read_list(t.int32_data(), array, make_integer);
      break;
    case T::INT8:
      is_raw ? read_raw<std::int8_t>(raw, array, make_integer)
             : read_list(t.int32_data(), array, make_integer);
      break;
    case T::BOOL:
    case T::UINT8:
      is_raw ? read_raw<std::uint8_t>(raw, array, make_unsigned)
             : read_list(t.int32_data(), array, make_unsigned);
      break;
    case T::UINT16:
      is_raw ? read_raw<std::uint16_t>(raw, array, make_unsigned)
             : read_list(t.int32_data(), array, make_unsigned);
      break;
    case T::UINT32:
      is_raw ? read_raw<std::uint32_t>(raw, array, make_unsigned)
             : read_list(t.uint64_data(), array, make_unsigned);
      break;
    case T::UINT64:
      is_raw ? read_raw<std::uint64_t>(raw, array, make_unsigned)
             : read_list(t.uint64_data(), array, make_unsigned);
      break;
    default: throw Missing("element type " + std::to_string(t.data_type()));
  }
  return array;
}

Dims strides(const Dims& dims) {
  Dims steps(dims.size(), 1);
  for (std::size_t a = dims.size(); a-- > 1;) steps[a - 1] = steps[a] * dims[a];
  return steps;
}
Index dot(const Dims& a, const Dims& b) {
  Index sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace oracle

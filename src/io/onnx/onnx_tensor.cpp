// SPDX-License-Identifier: Apache-2.0
#include "io/onnx/onnx_tensor.h"

#include <fmt/format.h>

#include <bit>

#include "base/checkpoint.h"
#include "io/arrays/entries.h"
#include "io/onnx/onnx_external.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

using onnx::TensorProto;

template <class Field, class Convert>
auto typed(const Field& field, std::size_t count, const std::string& name, Convert convert) {
  if (static_cast<std::size_t>(field.size()) != count) {
    throw Error(ErrorCode::kBadFile, fmt::format("tensor '{}' declares {} entries and holds {}",
                                                 name, count, field.size()));
  }
  std::vector<decltype(convert(field[0]))> entries;
  entries.reserve(count);
  for (const auto& entry : field) entries.push_back(convert(entry));
  return entries;
}

int typed_fields(const TensorProto& proto) {
  int used = 0;
  for (const int size :
       {proto.float_data_size(), proto.double_data_size(), proto.int32_data_size(),
        proto.int64_data_size(), proto.uint64_data_size(), proto.string_data_size()})
    used += size > 0 ? 1 : 0;
  return used;
}
[[noreturn]] void throw_twice(const TensorProto& proto) {
  throw Error(ErrorCode::kBadFile,
              fmt::format("tensor '{}' holds its entries in two places", proto.name()));
}

Tensor from_typed(const TensorProto& proto, ElementType type, Shape shape) {
  if (typed_fields(proto) > 1) throw_twice(proto);
  const auto count = static_cast<std::size_t>(element_count(shape));
  const std::string& name = proto.name();
  using enum ElementType;
  switch (type) {
    case kFloat32:
      return {type, std::move(shape),
              typed(proto.float_data(), count, name, [](float v) { return double{v}; })};
    case kFloat64:
      return {type, std::move(shape),
              typed(proto.double_data(), count, name, [](double v) { return v; })};
    case kFloat16:
      return {type, std::move(shape), typed(proto.int32_data(), count, name, [](std::int32_t v) {
                return float16_value(static_cast<std::uint16_t>(v));
              })};
    case kBFloat16:
      return {type, std::move(shape), typed(proto.int32_data(), count, name, [](std::int32_t v) {
                return bfloat16_value(static_cast<std::uint16_t>(v));
              })};
    case kInt64:
      return {type, std::move(shape),
              typed(proto.int64_data(), count, name, [](std::int64_t v) { return Index{v}; })};
    case kUInt32:
    case kUInt64:
      return {type, std::move(shape),
              typed(proto.uint64_data(), count, name, [type](std::uint64_t v) {
                return wrap_integer(type, std::bit_cast<Index>(v));
              })};
    default:
      return {type, std::move(shape),
              typed(proto.int32_data(), count, name,
                    [type](std::int32_t v) { return wrap_integer(type, Index{v}); })};
  }
}

}  // namespace

ElementType element_type(int onnx_type) {
  switch (onnx_type) {
    case TensorProto::FLOAT: return ElementType::kFloat32;
    case TensorProto::DOUBLE: return ElementType::kFloat64;
    case TensorProto::FLOAT16: return ElementType::kFloat16;
    case TensorProto::BFLOAT16: return ElementType::kBFloat16;
    case TensorProto::INT8: return ElementType::kInt8;
    case TensorProto::INT16: return ElementType::kInt16;
    case TensorProto::INT32: return ElementType::kInt32;
    case TensorProto::INT64: return ElementType::kInt64;
    case TensorProto::UINT8: return ElementType::kUInt8;
    case TensorProto::UINT16: return ElementType::kUInt16;
    case TensorProto::UINT32: return ElementType::kUInt32;
    case TensorProto::UINT64: return ElementType::kUInt64;
    case TensorProto::BOOL: return ElementType::kBool;
    case TensorProto::STRING:
      throw Error(ErrorCode::kUnsupported, "string tensors are not supported");
    case TensorProto::COMPLEX64:
    case TensorProto::COMPLEX128:
      throw Error(ErrorCode::kUnsupported, "complex tensors are not supported");
    case TensorProto::UNDEFINED: throw Error(ErrorCode::kBadFile, "a tensor has no element type");
    default:
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("tensor element type number {} is not supported", onnx_type));
  }
}

Tensor to_tensor(const TensorProto& proto, const std::string& folder) {
  const ElementType type = element_type(proto.data_type());
  Shape shape(proto.dims().begin(), proto.dims().end());
  if (proto.has_segment()) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("tensor '{}' is stored in segments", proto.name()));
  }
  Index bytes_wanted = 0;
  if (__builtin_mul_overflow(element_count(shape), static_cast<Index>(element_bytes(type)),
                             &bytes_wanted)) {
    throw Error(ErrorCode::kBadFile, fmt::format("tensor '{}' of shape {} is larger than any file",
                                                 proto.name(), to_string(shape)));
  }
  checkpoint(static_cast<double>(bytes_wanted));
  if (proto.data_location() == TensorProto::EXTERNAL) {
    if (!proto.raw_data().empty() || typed_fields(proto) > 0) throw_twice(proto);
    const std::string bytes = read_external(proto, folder, bytes_wanted);
    return decode_entries(std::as_bytes(std::span(bytes)), type, std::move(shape),
                          std::endian::little);
  }
  if (!proto.has_raw_data()) return from_typed(proto, type, std::move(shape));
  if (static_cast<Index>(proto.raw_data().size()) != bytes_wanted) {
    throw Error(
        ErrorCode::kBadFile,
        fmt::format("tensor '{}' of type {} and shape {} needs {} bytes and holds {}", proto.name(),
                    to_string(type), to_string(shape), bytes_wanted, proto.raw_data().size()));
  }
  if (typed_fields(proto) > 0) throw_twice(proto);
  return decode_entries(std::as_bytes(std::span(proto.raw_data())), type, std::move(shape),
                        std::endian::little);
}

Tensor parse_tensor_proto(std::span<const std::byte> bytes) {
  TensorProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw Error(ErrorCode::kBadFile, "not a serialized tensor");
  }
  return to_tensor(proto, "");
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Tensor entries as they lie in files: packed numbers of one type and one byte order.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "io/arrays/bytes.h"
#include "lipscope/tensor.h"

namespace lipscope {

[[nodiscard]] std::size_t element_bytes(ElementType type);

// Bytes of an array of that shape; nothing when a dimension is negative or the product of the
// others overflows. Also overflows behind a zero dimension: such a header is nonsense.
[[nodiscard]] std::optional<std::uint64_t> packed_bytes(ElementType type, const Shape& shape);

// packed_bytes for a header read from a file: kBadFile unless it is what the file holds.
void require_packed_bytes(ElementType type, const Shape& shape, std::uint64_t available,
                          std::string_view name);

enum class Layout : std::uint8_t { kRowMajor, kColumnMajor };

// `data` holds exactly packed_bytes(type, shape) (kInternal otherwise).
[[nodiscard]] Tensor decode_entries(Bytes data, ElementType type, Shape shape, std::endian order,
                                    Layout layout = Layout::kRowMajor);

// Little-endian, row-major; floating entries rounded to the element type.
[[nodiscard]] std::vector<std::byte> encode_entries(const Tensor& tensor);

[[nodiscard]] double float16_value(std::uint16_t bits);
[[nodiscard]] double bfloat16_value(std::uint16_t bits);

}  // namespace lipscope

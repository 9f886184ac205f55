// SPDX-License-Identifier: Apache-2.0
// The idx format of the MNIST files: 0 0 type rank, big-endian dimensions and entries.
#include <optional>

#include "io/arrays/entries.h"
#include "io/arrays/formats.h"

namespace lipscope {
namespace {

std::optional<ElementType> idx_element_type(std::byte code) {
  switch (static_cast<std::uint8_t>(code)) {
    case 0x08: return ElementType::kUInt8;
    case 0x09: return ElementType::kInt8;
    case 0x0B: return ElementType::kInt16;
    case 0x0C: return ElementType::kInt32;
    case 0x0D: return ElementType::kFloat32;
    case 0x0E: return ElementType::kFloat64;
    default: return std::nullopt;
  }
}

// Leaves the reader at the entries.
Shape read_shape(ByteReader& reader) {
  reader.take(3);
  Shape shape(reader.number<std::uint8_t>());
  for (Index& dimension : shape) dimension = reader.number<std::uint32_t>(std::endian::big);
  return shape;
}

}  // namespace

bool is_idx(Bytes bytes) {
  return bytes.size() >= 4 && bytes[0] == std::byte{0} && bytes[1] == std::byte{0} &&
         idx_element_type(bytes[2]).has_value();
}

bool is_exact_idx(Bytes bytes) {
  if (!is_idx(bytes)) return false;
  const std::size_t header = 4 + 4 * static_cast<std::size_t>(bytes[3]);
  if (bytes.size() < header) return false;
  ByteReader reader(bytes, "", "");
  const Shape shape = read_shape(reader);
  return packed_bytes(*idx_element_type(bytes[2]), shape) == reader.remaining();
}

Tensor parse_idx(Bytes bytes, const std::string& name) {
  if (!is_idx(bytes)) bad_file(name, "not an idx file; give .npy, .npz, idx or csv data");
  const ElementType type = *idx_element_type(bytes[2]);
  ByteReader reader(bytes, name, "idx header");
  Shape shape = read_shape(reader);
  require_packed_bytes(type, shape, reader.remaining(), name);
  return decode_entries(reader.rest(), type, std::move(shape), std::endian::big);
}

}  // namespace lipscope

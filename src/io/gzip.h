// SPDX-License-Identifier: Apache-2.0
// The two wrappings of deflate data: gzip files and zip members.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/bytes.h"

namespace lipscope {

// A few bytes of deflate data can stand for a thousand times as many; past this they are refused.
inline constexpr std::uint64_t kMaxInflatedBytes = std::uint64_t{4} << 30U;

// The contents of a gzip file (all members of it), nothing when `bytes` is not one. kBadFile when
// it is damaged or unpacks to more than `max_bytes`.
[[nodiscard]] std::optional<std::vector<std::byte>> gunzip_if_gzip(
    Bytes bytes, const std::string& name, std::uint64_t max_bytes = kMaxInflatedBytes);

// Raw deflate data, as in a zip member, that unpacks to exactly `size` bytes; kBadFile otherwise.
[[nodiscard]] std::vector<std::byte> inflate_raw(Bytes bytes, std::uint64_t size,
                                                 const std::string& name);

enum class DeflateFormat : std::uint8_t { kRaw, kGzip };
[[nodiscard]] std::vector<std::byte> deflate_bytes(Bytes bytes, DeflateFormat format);

}  // namespace lipscope

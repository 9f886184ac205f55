// SPDX-License-Identifier: Apache-2.0
// The two wrappings of deflate data: gzip files and zip members.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/arrays/bytes.h"

namespace lipscope {

// A few bytes of deflate data can stand for a thousand times as many; real arrays and models shrink
// to a tenth at best, small ones to less. What unpacks to more than this is refused.
[[nodiscard]] constexpr std::uint64_t most_unpacked(std::uint64_t packed) {
  constexpr std::uint64_t kAlways = 256'000'000, kTimes = 30;
  return kAlways + kTimes * packed;
}

// The contents of a gzip file (all members of it), nothing when `bytes` is not one. kBadFile when
// it is damaged or unpacks to more than `max_bytes`, kUnsupported when to more than the memory
// limit leaves.
[[nodiscard]] std::optional<std::vector<std::byte>> gunzip_if_gzip(Bytes bytes,
                                                                   const std::string& name,
                                                                   std::uint64_t max_bytes);
[[nodiscard]] inline std::optional<std::vector<std::byte>> gunzip_if_gzip(Bytes bytes,
                                                                          const std::string& name) {
  return gunzip_if_gzip(bytes, name, most_unpacked(bytes.size()));
}

// Raw deflate data, as in a zip member, that unpacks to exactly `size` bytes; kBadFile otherwise.
[[nodiscard]] std::vector<std::byte> inflate_raw(Bytes bytes, std::uint64_t size,
                                                 const std::string& name);

enum class DeflateFormat : std::uint8_t { kRaw, kGzip };
[[nodiscard]] std::vector<std::byte> deflate_bytes(Bytes bytes, DeflateFormat format);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Zip archives as far as .npz files use them: stored and deflated members, zip64, data descriptors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/arrays/bytes.h"

namespace lipscope {

struct ZipMember {
  std::string name;
  bool encrypted = false;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint64_t packed_size = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
};

// The members in the order of the central directory. kBadFile when it is damaged.
[[nodiscard]] std::vector<ZipMember> read_zip_directory(Bytes archive, const std::string& name);

// The contents, checked against size and CRC. A stored member is a part of `archive`, a deflated
// one is put in `buffer`.
[[nodiscard]] Bytes read_zip_member(Bytes archive, const ZipMember& member, const std::string& name,
                                    std::vector<std::byte>& buffer);

struct ZipInput {
  std::string name;
  std::vector<std::byte> data;
};
// Members beyond 4 GiB are kUnsupported.
[[nodiscard]] std::vector<std::byte> write_zip(std::span<const ZipInput> members, bool deflated);

}  // namespace lipscope

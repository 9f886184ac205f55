// SPDX-License-Identifier: Apache-2.0
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
#include "io/arrays/zip.h"

#include <zlib.h>

#include <limits>

#include "io/arrays/gzip.h"

namespace lipscope {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kCentralHeader = 0x02014b50;
constexpr std::uint32_t kEndRecord = 0x06054b50;
constexpr std::uint32_t kEndRecord64 = 0x06064b50;
constexpr std::uint32_t kEndLocator64 = 0x07064b50;
constexpr std::size_t kEndRecordBytes = 22;
constexpr std::size_t kEndLocatorBytes = 20;
constexpr std::size_t kCentralHeaderBytes = 46;
constexpr std::uint16_t kZip64Extra = 1;
constexpr std::uint16_t kStored = 0;
constexpr std::uint16_t kDeflated = 8;
constexpr std::uint32_t kMax32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint16_t kMax16 = std::numeric_limits<std::uint16_t>::max();
constexpr std::string_view kWhat = "zip archive";

struct Directory {
  std::uint64_t entries = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
};

[[noreturn]] void damaged(const std::string& name) {
  bad_file(name, "damaged zip directory; copy or save the file again");
}

std::uint32_t crc_of(Bytes bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// The end record is the last thing in the file, behind it only a comment of known length.
std::size_t find_end_record(Bytes archive, const std::string& name) {
  if (archive.size() >= kEndRecordBytes) {
    const std::size_t last = archive.size() - kEndRecordBytes;
    for (std::size_t comment = 0; comment <= std::min<std::size_t>(last, kMax16); ++comment) {
      const std::byte* at = archive.data() + (last - comment);
      if (load<std::uint32_t>(at, std::endian::little) == kEndRecord &&
          load<std::uint16_t>(at + 20, std::endian::little) == comment) {
        return last - comment;
      }
    }
  }
  bad_file(name, "truncated zip archive (its directory is missing); copy or save the file again");
}

Directory read_end_record64(Bytes archive, std::size_t end, const std::string& name) {
  if (end < kEndLocatorBytes) damaged(name);
  ByteReader locator(archive.subspan(end - kEndLocatorBytes), name, kWhat);
  if (locator.number<std::uint32_t>() != kEndLocator64) damaged(name);
  locator.take(4);
  const auto offset = locator.number<std::uint64_t>();
  if (offset > archive.size()) damaged(name);
  ByteReader record(archive.subspan(static_cast<std::size_t>(offset)), name, kWhat);
  if (record.number<std::uint32_t>() != kEndRecord64) damaged(name);
  record.take(8 + 2 + 2 + 4 + 4 + 8);
  Directory directory;
  directory.entries = record.number<std::uint64_t>();
  directory.size = record.number<std::uint64_t>();
  directory.offset = record.number<std::uint64_t>();
  return directory;
}

Directory read_end_record(Bytes archive, const std::string& name) {
  const std::size_t end = find_end_record(archive, name);
  ByteReader record(archive.subspan(end), name, kWhat);
  record.take(4 + 2 + 2 + 2);
  Directory directory;
  directory.entries = record.number<std::uint16_t>();
  directory.size = record.number<std::uint32_t>();
  directory.offset = record.number<std::uint32_t>();
  if (directory.entries == kMax16 || directory.size == kMax32 || directory.offset == kMax32) {
    return read_end_record64(archive, end, name);
  }
  return directory;
}

// The sizes that do not fit their 32-bit fields, in a fixed order.
void read_zip64_extra(ZipMember& member, Bytes extra, const std::string& name) {
  ByteReader fields(extra, name, kWhat);
  while (fields.remaining() >= 4) {
    const auto id = fields.number<std::uint16_t>();
    ByteReader field(fields.take(fields.number<std::uint16_t>()), name, kWhat);
    if (id != kZip64Extra) continue;
    for (std::uint64_t* value : {&member.size, &member.packed_size, &member.offset}) {
      if (*value == kMax32) *value = field.number<std::uint64_t>();
    }
    return;
  }
}

ZipMember read_central_header(ByteReader& reader, const std::string& name) {
  if (reader.number<std::uint32_t>() != kCentralHeader) damaged(name);
  reader.take(2 + 2);
  ZipMember member;
  member.encrypted = (reader.number<std::uint16_t>() & 1U) != 0;
  member.method = reader.number<std::uint16_t>();
  reader.take(2 + 2);
  member.crc = reader.number<std::uint32_t>();
  member.packed_size = reader.number<std::uint32_t>();
  member.size = reader.number<std::uint32_t>();
  const auto name_size = reader.number<std::uint16_t>();
  const auto extra_size = reader.number<std::uint16_t>();
  const auto comment_size = reader.number<std::uint16_t>();
  reader.take(2 + 2 + 4);
  member.offset = reader.number<std::uint32_t>();
  member.name = as_text(reader.take(name_size));
  read_zip64_extra(member, reader.take(extra_size), name);
  reader.take(comment_size);
  return member;
}

template <typename T>
void put(std::vector<std::byte>& out, std::uint64_t value) {
  for (std::size_t k = 0; k < sizeof(T); ++k) {
    out.push_back(static_cast<std::byte>(value >> (8 * k)));
  }
}

void put_bytes(std::vector<std::byte>& out, Bytes bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// The fields that the local and the central header share.
void put_common(std::vector<std::byte>& out, const ZipMember& member) {
  constexpr std::uint16_t kVersion = 20;
  constexpr std::uint16_t kFirstOfJanuary1980 = 0x21;
  put<std::uint16_t>(out, kVersion);
  put<std::uint16_t>(out, 0);
  put<std::uint16_t>(out, member.method);
  put<std::uint16_t>(out, 0);
  put<std::uint16_t>(out, kFirstOfJanuary1980);
  put<std::uint32_t>(out, member.crc);
  put<std::uint32_t>(out, member.packed_size);
  put<std::uint32_t>(out, member.size);
  put<std::uint16_t>(out, member.name.size());
  put<std::uint16_t>(out, 0);
}

}  // namespace

std::vector<ZipMember> read_zip_directory(Bytes archive, const std::string& name) {
  const Directory directory = read_end_record(archive, name);
  if (directory.offset > archive.size() || directory.size > archive.size() - directory.offset ||
      directory.entries > directory.size / kCentralHeaderBytes) {
    damaged(name);
  }
  ByteReader reader(archive.subspan(static_cast<std::size_t>(directory.offset),
                                    static_cast<std::size_t>(directory.size)),
                    name, kWhat);
  std::vector<ZipMember> members;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    members.push_back(read_central_header(reader, name));
  }
  return members;
}

Bytes read_zip_member(Bytes archive, const ZipMember& member, const std::string& name,
                      std::vector<std::byte>& buffer) {
  if (member.encrypted) unsupported_file(name, "is encrypted; save it without a password");
  if (member.offset > archive.size()) damaged(name);
  ByteReader reader(archive.subspan(static_cast<std::size_t>(member.offset)), name, kWhat);
  if (reader.number<std::uint32_t>() != kLocalHeader) damaged(name);
  reader.take(2 + 2 + 2 + 2 + 2 + 4 + 4 + 4);
  const auto name_size = reader.number<std::uint16_t>();
  const auto extra_size = reader.number<std::uint16_t>();
  reader.take(name_size);
  reader.take(extra_size);
  Bytes data = reader.take(member.packed_size);
  if (member.method == kDeflated) {
    buffer = inflate_raw(data, member.size, name);
    data = buffer;
  } else if (member.method != kStored) {
    unsupported_file(name, "zip compression method {}; save with numpy.savez or savez_compressed",
                     member.method);
  }
  if (data.size() != member.size) damaged(name);
  if (crc_of(data) != member.crc) {
    bad_file(name, "checksum mismatch, the data is damaged; copy or save the file again");
  }
  return data;
}

std::vector<std::byte> write_zip(std::span<const ZipInput> inputs, bool deflated) {
  std::vector<std::byte> out;
  std::vector<std::byte> directory;
  for (const ZipInput& input : inputs) {
    ZipMember member{.name = input.name,
                     .method = deflated ? kDeflated : kStored,
                     .crc = crc_of(input.data),
                     .size = input.data.size(),
                     .offset = out.size()};
    if (std::max(member.size, member.offset) >= kMax32 / 2 || member.name.size() >= kMax16) {
      unsupported_file(in_quotes(member.name), "too large to write; write fewer arrays to a file");
    }
    const std::vector<std::byte> packed =
        deflated ? deflate_bytes(input.data, DeflateFormat::kRaw) : input.data;
    member.packed_size = packed.size();
    const Bytes name = std::as_bytes(std::span(member.name));
    put<std::uint32_t>(out, kLocalHeader);
    put_common(out, member);
    put_bytes(out, name);
    put_bytes(out, packed);
    put<std::uint32_t>(directory, kCentralHeader);
    put<std::uint16_t>(directory, 20);
    put_common(directory, member);
    directory.insert(directory.end(), 2 + 2 + 2 + 4, std::byte{0});
    put<std::uint32_t>(directory, member.offset);
    put_bytes(directory, name);
  }
  const std::size_t offset = out.size();
  put_bytes(out, directory);
  put<std::uint32_t>(out, kEndRecord);
  put<std::uint32_t>(out, 0);
  put<std::uint16_t>(out, inputs.size());
  put<std::uint16_t>(out, inputs.size());
  put<std::uint32_t>(out, directory.size());
  put<std::uint32_t>(out, offset);
  put<std::uint16_t>(out, 0);
  return out;
}

}  // namespace lipscope

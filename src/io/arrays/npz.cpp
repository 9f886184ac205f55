// SPDX-License-Identifier: Apache-2.0
// .npz files: zip archives of .npy files.
#include <set>

#include "io/arrays/formats.h"
#include "io/arrays/gzip.h"
#include "io/arrays/zip.h"

namespace lipscope {
namespace {

constexpr std::string_view kExtension = ".npy";

struct ArrayMember {
  std::string key;
  ZipMember zip;
};

// The members that are arrays. A zip file that holds other things only is no .npz file.
std::vector<ArrayMember> array_members(Bytes bytes, const std::string& name) {
  std::vector<ArrayMember> arrays;
  std::set<std::string> keys;
  const std::vector<ZipMember> members = read_zip_directory(bytes, name);
  for (const ZipMember& member : members) {
    if (!member.name.ends_with(kExtension)) continue;
    std::string key = member.name.substr(0, member.name.size() - kExtension.size());
    if (!keys.insert(key).second) {
      bad_file(name, "two arrays are called {}; save the file again", in_quotes(key));
    }
    arrays.push_back({std::move(key), member});
  }
  if (!arrays.empty() || members.empty()) return arrays;
  for (const ZipMember& member : members) {
    if (member.name.ends_with("data.pkl")) {
      bad_file(name, "a PyTorch file, not arrays; save them with numpy.savez(file, x=x.numpy())");
    }
  }
  bad_file(name,
           "a zip archive without arrays (its first member is {}); save them with "
           "numpy.savez",
           in_quotes(members.front().name));
}

}  // namespace

bool is_zip(Bytes bytes) {
  return starts_with(bytes, "PK\x03\x04") || starts_with(bytes, "PK\x05\x06");
}

std::vector<std::string> npz_names(Bytes bytes, const std::string& name) {
  std::vector<std::string> names;
  for (ArrayMember& member : array_members(bytes, name)) names.push_back(std::move(member.key));
  return names;
}

std::vector<NamedTensor> parse_npz(Bytes bytes, const std::string& name,
                                   const ArrayFilter& wanted) {
  std::vector<NamedTensor> tensors;
  // Members may overlap, so that a small file claims any amount.
  const std::uint64_t most = most_unpacked(bytes.size());
  std::uint64_t total = 0;
  for (ArrayMember& member : array_members(bytes, name)) {
    if (wanted && !wanted(member.key)) continue;
    const std::string member_name = fmt::format("{}:{}", name, printable(member.key));
    if (member.zip.size > most - total) {
      bad_file(member_name,
               "unpacks to more than {} bytes, from {}; save the arrays uncompressed, or read "
               "fewer at a time",
               most, bytes.size());
    }
    total += member.zip.size;
    std::vector<std::byte> buffer;
    const Bytes data = read_zip_member(bytes, member.zip, member_name, buffer);
    tensors.push_back({std::move(member.key), parse_npy(data, member_name)});
  }
  return tensors;
}

std::vector<std::byte> write_npz(std::span<const NamedTensor> arrays, Compression compression) {
  std::vector<ZipInput> members;
  for (const NamedTensor& array : arrays) {
    members.push_back({array.name + std::string(kExtension), write_npy(array.tensor)});
  }
  return write_zip(members, compression == Compression::kDeflated);
}

}  // namespace lipscope

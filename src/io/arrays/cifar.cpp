// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 binary records: one label byte, then 32 x 32 bytes for each of red, green and blue.
#include "io/arrays/formats.h"

namespace lipscope {
namespace {

constexpr std::size_t kImageBytes = 3 * 32 * 32;
constexpr std::size_t kRecordBytes = 1 + kImageBytes;
constexpr std::size_t kClasses = 10;

}  // namespace

bool is_cifar(Bytes bytes) {
  if (bytes.empty() || bytes.size() % kRecordBytes != 0) return false;
  for (std::size_t at = 0; at < bytes.size(); at += kRecordBytes) {
    if (static_cast<std::size_t>(bytes[at]) >= kClasses) return false;
  }
  return true;
}

std::vector<NamedTensor> parse_cifar(Bytes bytes, const std::string& name) {
  if (!is_cifar(bytes)) {
    bad_file(name, "not CIFAR-10 records (a label below {} and {} bytes each); copy the file again",
             kClasses, kImageBytes);
  }
  const std::size_t count = bytes.size() / kRecordBytes;
  std::vector<Index> pixels;
  std::vector<Index> labels;
  pixels.reserve(count * kImageBytes);
  labels.reserve(count);
  for (std::size_t at = 0; at < bytes.size(); at += kRecordBytes) {
    labels.push_back(static_cast<Index>(bytes[at]));
    for (const std::byte pixel : bytes.subspan(at + 1, kImageBytes)) {
      pixels.push_back(static_cast<Index>(pixel));
    }
  }
  const auto n = static_cast<Index>(count);
  return {{"data", Tensor(ElementType::kUInt8, {n, 3, 32, 32}, std::move(pixels))},
          {"labels", Tensor(ElementType::kUInt8, {n}, std::move(labels))}};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// What every parser of this folder needs: checked reading of bytes, and errors that name the file.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "lipscope/error.h"

namespace lipscope {

using Bytes = std::span<const std::byte>;

template <typename... Args>
[[noreturn]] void bad_file(std::string_view name, fmt::format_string<Args...> text,
                           Args&&... args) {
  throw Error(ErrorCode::kBadFile,
              fmt::format("{}: {}", name, fmt::format(text, std::forward<Args>(args)...)));
}

template <typename... Args>
[[noreturn]] void unsupported_file(std::string_view name, fmt::format_string<Args...> text,
                                   Args&&... args) {
  throw Error(ErrorCode::kUnsupported,
              fmt::format("{}: {}", name, fmt::format(text, std::forward<Args>(args)...)));
}

[[nodiscard]] inline bool starts_with(Bytes bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

[[nodiscard]] inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The number at an address of any alignment; the caller has checked that sizeof(T) bytes are there.
template <typename T>
[[nodiscard]] T load(const std::byte* from, std::endian order) {
  std::byte raw[sizeof(T)];
  std::memcpy(raw, from, sizeof(T));
  if (order != std::endian::native) std::reverse(raw, raw + sizeof(T));
  return std::bit_cast<T>(raw);
}

// Reads front to back; running off the end is kBadFile, "NAME: truncated WHAT". One user at a time.
class ByteReader {
 public:
  ByteReader(Bytes bytes, std::string_view name, std::string_view what)
      : bytes_(bytes), name_(name), what_(what) {}

  [[nodiscard]] std::size_t remaining() const noexcept { return bytes_.size(); }
  [[nodiscard]] Bytes rest() const noexcept { return bytes_; }

  Bytes take(std::uint64_t count) {
    if (count > bytes_.size()) {
      bad_file(name_, "truncated {}; copy or save the file again", what_);
    }
    const Bytes taken = bytes_.first(static_cast<std::size_t>(count));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  template <typename T>
  [[nodiscard]] T number(std::endian order = std::endian::little) {
    return load<T>(take(sizeof(T)).data(), order);
  }

 private:
  Bytes bytes_;
  std::string_view name_;
  std::string_view what_;
};

}  // namespace lipscope

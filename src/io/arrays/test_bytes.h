// SPDX-License-Identifier: Apache-2.0
// Building and damaging file contents in tests.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/error.h"

namespace lipscope::testing {

using Buffer = std::vector<std::byte>;

inline Buffer bytes_of(std::string_view text) {
  const auto raw = std::as_bytes(std::span(text));
  return {raw.begin(), raw.end()};
}

inline Buffer bytes_of(std::initializer_list<int> values) {
  Buffer out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

inline Buffer operator+(Buffer a, const Buffer& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Buffer truncated(Buffer bytes, std::size_t count) {
  bytes.resize(count);
  return bytes;
}

inline std::size_t find(const Buffer& bytes, std::string_view what) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string_view::npos) << what;
  return at;
}

// An .npy file, version 1, around a header that need not make sense.
inline Buffer npy_file(std::string_view header, const Buffer& entries) {
  return bytes_of("\x93NUMPY") +
         bytes_of(
             {1, 0, static_cast<int>(header.size() % 256), static_cast<int>(header.size() / 256)}) +
         bytes_of(header) + entries;
}

// Runs it, expecting an Error with this code and text. The message must be one line.
template <typename Run>
void expect_error(Run&& run, ErrorCode code, std::string_view text) {
  try {
    run();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(to_string(error.code()), to_string(code)) << message;
    EXPECT_NE(message.find(text), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

}  // namespace lipscope::testing

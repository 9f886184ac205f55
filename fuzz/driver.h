// SPDX-License-Identifier: Apache-2.0
// A fuzz target defines seeds() and LLVMFuzzerTestOneInput. Linked with driver.cpp it is a program
// of its own that needs nothing but g++; linked with -fsanitize=fuzzer (clang) instead, it is a
// libFuzzer target and seeds() is not called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/error.h"

namespace lipscope::fuzz {

using Input = std::vector<std::uint8_t>;

// A few small inputs that the parser accepts; mutation starts from them. Defined by the target.
[[nodiscard]] std::vector<Input> seeds();

[[nodiscard]] inline Input input(std::span<const std::byte> bytes) {
  Input out(bytes.size());
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}
[[nodiscard]] inline Input input(std::string_view text) {
  return input(std::as_bytes(std::span(text)));
}

// How the last input was refused, numbers and quotations aside; 0 when it was accepted. Stands in
// for coverage: the driver keeps inputs that are refused in a new way and mutates them further.
inline std::size_t last_outcome = 0;

// What every target does with its input: an Error is the proper answer to a bad file, unless it
// reports a defect here or would not fit on a line. All else is a crash.
template <typename Parse>
int run(Parse&& parse) {
  last_outcome = 0;
  try {
    parse();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
    const std::string_view message = error.what();
    if (message.find('\n') != std::string_view::npos) {
      throw std::logic_error("an error message of more than one line");
    }
    // Quotations are of the input.
    const std::size_t quote = message.find('\'');
    std::string kind(message.substr(0, quote));
    if (quote != std::string_view::npos) kind += message.substr(message.rfind('\''));
    std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
    last_outcome = std::hash<std::string>()(kind) | 1U;
  }
  return 0;
}

[[nodiscard]] inline std::span<const std::byte> bytes(const std::uint8_t* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

}  // namespace lipscope::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

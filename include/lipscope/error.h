// SPDX-License-Identifier: Apache-2.0
// Failures that are the caller's or the file's fault. Everything else that can go wrong is a value.
//
//   try { auto graph = lipscope::load_onnx("net.onnx"); }
//   catch (const lipscope::Error& e) { std::cerr << e.what() << '\n'; }
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace lipscope {

enum class ErrorCode {
  kUsage,        // the call itself is wrong: unknown flag, impossible combination
  kBadFile,      // a file is missing, truncated or contradicts itself
  kShape,        // tensor shapes do not fit together
  kUnsupported,  // valid, but not something this library can do
  kInternal,     // a broken invariant in this library
};

// Stable name used in JSON: "usage", "bad-file", "shape", "unsupported", "internal".
[[nodiscard]] std::string_view to_string(ErrorCode code);

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace lipscope

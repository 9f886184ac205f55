// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lipscope {

// Text out of a file made fit for a message: control and non-ASCII bytes as \xNN, and short.
[[nodiscard]] std::string printable(std::string_view text, std::size_t max_chars = 60);
// The same in single quotes.
[[nodiscard]] std::string in_quotes(std::string_view text, std::size_t max_chars = 60);

// A message with control characters as \xNN: no line breaks, nothing a terminal obeys.
[[nodiscard]] std::string one_line(std::string_view text, std::size_t max_chars = 1000);

}  // namespace lipscope

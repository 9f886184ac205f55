// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lipscope {

// Text out of a file made fit for a message: control and non-ASCII bytes as \xNN, and short.
[[nodiscard]] std::string printable(std::string_view text, std::size_t max_chars = 60);
// The same in single quotes.
[[nodiscard]] std::string in_quotes(std::string_view text, std::size_t max_chars = 60);

// The first few names with commas between them, and how many more there are.
[[nodiscard]] std::string listed(const std::vector<std::string>& names);

// A message or a name with control characters as \xNN: no line breaks, nothing a terminal obeys or
// that changes the direction of what follows.
[[nodiscard]] std::string one_line(std::string_view text, std::size_t max_chars = 1000);
// The same for text of several lines, whatever its length: line breaks and tabs stay.
[[nodiscard]] std::string plain_text(std::string_view text);

}  // namespace lipscope

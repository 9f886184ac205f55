// SPDX-License-Identifier: Apache-2.0
// Text for people: tables, sizes, suggestions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lipscope/tensor.h"

namespace lipscope::app {

// Columns aligned, two spaces apart, no trailing blanks; the first row is a heading. A row is a
// line, whatever its cells hold.
[[nodiscard]] std::string format_table(std::vector<std::vector<std::string>> rows);

// "109 386": thin groups of three.
[[nodiscard]] std::string group_digits(Index value);

// "1x28x28".
[[nodiscard]] std::string format_dims(const Shape& shape);

// The closest of `words` when it is close enough to be a misspelling; empty otherwise.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& words);

}  // namespace lipscope::app

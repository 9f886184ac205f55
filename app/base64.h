// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lipscope::app {

[[nodiscard]] std::string to_base64(const std::vector<unsigned char>& bytes);
// Nothing for text of another kind.
[[nodiscard]] std::optional<std::vector<unsigned char>> from_base64(const std::string& text);

}  // namespace lipscope::app

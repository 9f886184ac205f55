// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lipscope {

// "0.1.0".
[[nodiscard]] std::string version();
// Libraries and compiler behind this build, by name.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> build_features();

}  // namespace lipscope

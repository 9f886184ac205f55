// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lipscope::app {

// Complete or not at all: written beside the target, then moved over it. Throws kBadFile.
void write_file(const std::string& path, const std::string& text);

}  // namespace lipscope::app

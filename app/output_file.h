// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lipscope::app {

// Complete or not at all: written beside the target, then moved over it. What is no plain file (a
// device, a pipe) is written to as it is; a link keeps pointing where it does. Throws kBadFile.
void write_file(const std::string& path, const std::string& text);

// Throws kBadFile for a path that cannot be written, before work is done in vain.
void require_writable(const std::string& path);

}  // namespace lipscope::app

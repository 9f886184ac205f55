// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_reader.h"

namespace lipscope {

// The document in a file, or on standard input for "-". kBadFile, naming the file, for everything
// that parse_json refuses, and for a file that is too large before it is read.
[[nodiscard]] Json read_json(const std::string& path, const JsonLimits& limits = {});

}  // namespace lipscope

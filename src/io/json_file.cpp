// SPDX-License-Identifier: Apache-2.0
#include "io/json_file.h"

#include <nlohmann/json.hpp>

#include "io/input_file.h"

namespace lipscope {

Json read_json(const std::string& path, const JsonLimits& limits) {
  return parse_json(as_text(read_file(path, limits.bytes)), display_name(path), limits);
}

}  // namespace lipscope

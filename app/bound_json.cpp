// SPDX-License-Identifier: Apache-2.0
#include "bound_json.h"

#include <nlohmann/json.hpp>

namespace lipscope::app {

Json to_json(const std::optional<Bound>& bound) {
  if (!bound) return nullptr;
  return {{"value", bound->value},
          {"guarantee", to_string(bound->guarantee)},
          {"method", bound->method}};
}

}  // namespace lipscope::app

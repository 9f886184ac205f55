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

Json proved(double value, std::string_view method) {
  return to_json(Bound{value, Guarantee::kProved, std::string(method)});
}

std::optional<Bound> best_lower(const Bracket& bracket) {
  for (const Guarantee least : {Guarantee::kProved, Guarantee::kReal, Guarantee::kEstimate}) {
    if (const auto bound = bracket.lower(least)) return bound;
  }
  return std::nullopt;
}

std::optional<Bound> best_upper(const Bracket& bracket) {
  for (const Guarantee least : {Guarantee::kProved, Guarantee::kReal, Guarantee::kEstimate}) {
    if (const auto bound = bracket.upper(least)) return bound;
  }
  return std::nullopt;
}

}  // namespace lipscope::app

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

namespace {

struct Ends {
  std::optional<Bound> lower, upper;
};

Ends best_ends(const Bracket& bracket) {
  Ends ends;
  for (const Guarantee least : {Guarantee::kProved, Guarantee::kReal, Guarantee::kEstimate}) {
    if (!ends.lower) ends.lower = bracket.lower(least);
    if (!ends.upper) ends.upper = bracket.upper(least);
  }
  uncross(ends.lower, ends.upper);
  return ends;
}

}  // namespace

std::optional<Bound> best_lower(const Bracket& bracket) { return best_ends(bracket).lower; }

std::optional<Bound> best_upper(const Bracket& bracket) { return best_ends(bracket).upper; }

}  // namespace lipscope::app

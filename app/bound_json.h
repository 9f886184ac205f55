// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/json.h"
#include "lipscope/bound.h"

namespace lipscope::app {

// {"value", "guarantee", "method"}, or null.
[[nodiscard]] Json to_json(const std::optional<Bound>& bound);
[[nodiscard]] Json proved(double value, std::string_view method);

// The bound with the best guarantee there is; the two never cross.
[[nodiscard]] std::optional<Bound> best_lower(const Bracket& bracket);
[[nodiscard]] std::optional<Bound> best_upper(const Bracket& bracket);

}  // namespace lipscope::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json.h"
#include "lipscope/bound.h"

namespace lipscope::app {

// {"value", "guarantee", "method"}, or null.
[[nodiscard]] Json to_json(const std::optional<Bound>& bound);

}  // namespace lipscope::app

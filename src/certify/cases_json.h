// SPDX-License-Identifier: Apache-2.0
// A proof by cases as JSON: {"nodes":[...],"input_weights":[[...],...]}; per node
// {"split":[layer,place],"at":z,"below":i,"above":j}, or
// {"empty":[[layer,place,weight],...],"constant":true} or {"multipliers":[...]}.
#pragma once

#include "base/json.h"
#include "lipscope/bound.h"

namespace lipscope {

[[nodiscard]] Json cases_to_json(const CaseTree& tree);
// Throws nlohmann::json::exception for another form.
[[nodiscard]] CaseTree cases_from_json(const Json& document);

}  // namespace lipscope

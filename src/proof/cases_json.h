// SPDX-License-Identifier: Apache-2.0
// A proof by cases as JSON: {"nodes":[...],"input_weights":[[...],...]}; per node
// {"split":[layer,place],"at":z,"below":i,"above":j}, or
// {"empty":[[layer,place,weight],...],"constant":true} or {"multipliers":[...]}. Where there are
// any, "narrowing":[[[...],...],...] and "ranges":[{"unit":[layer,place],"end":"lower","lines":
// hexadecimal digits},...].
#pragma once

#include "base/json_reader.h"
#include "lipscope/proof.h"

namespace lipscope {

[[nodiscard]] Json cases_to_json(const CaseTree& tree);
// Throws kBadFile for another form.
[[nodiscard]] CaseTree read_cases(JsonFields& fields);

}  // namespace lipscope

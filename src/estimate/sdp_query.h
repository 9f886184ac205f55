// SPDX-License-Identifier: Apache-2.0
// Which queries the methods about networks of units can answer.
#pragma once

#include <string>

#include "lipscope/bound.h"

namespace lipscope {

// Why a bound from l2 to l2 is no answer to the query; empty when it is one.
[[nodiscard]] std::string why_not_euclidean(const Query& query);

// Whether reading all weights would not keep a first bracket waiting.
[[nodiscard]] bool is_small(const Graph& graph);

}  // namespace lipscope

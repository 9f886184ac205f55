// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "lipscope/graph.h"

namespace lipscope {

// A distance, at most `most`, around the point within which every node of the graph has a real
// number for a value: no root of a negative number, no quotient by zero, whatever becomes of it
// [robustness-11]. In every norm.
[[nodiscard]] double well_defined_radius(const Graph& graph, std::span<const double> point,
                                         double most);

}  // namespace lipscope

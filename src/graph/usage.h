// SPDX-License-Identifier: Apache-2.0
// Which values of a graph anybody reads.
#pragma once

#include <string>
#include <vector>

#include "lipscope/graph.h"

namespace lipscope {

// By value: whether a node takes it or the graph gives it.
[[nodiscard]] std::vector<bool> used_values(const Graph& graph);

// The first node that makes integers of what moves with an input, in any output that is used; null
// where there is none. A function through such a node jumps, and its slopes do not tell.
[[nodiscard]] const Node* first_step(const Graph& graph);

}  // namespace lipscope

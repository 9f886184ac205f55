// SPDX-License-Identifier: Apache-2.0
// Where a graph jumps.
#pragma once

#include <span>
#include <string>

#include "lipscope/graph.h"

namespace lipscope {

// The name of a node that makes the first output of a function of single entries which has no
// bounded slope next to the point, however near, as steps at their edges; empty when there is none.
// At the point alone such a function may well look flat. `inputs`: a value for each.
[[nodiscard]] std::string jump_next_to(const Graph& graph, std::span<const Tensor> inputs);

}  // namespace lipscope

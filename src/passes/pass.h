// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "lipscope/graph.h"

namespace lipscope {

// All passes, in the order they run.
[[nodiscard]] std::span<const Pass> passes();
[[nodiscard]] Graph run_passes(Graph graph);

}  // namespace lipscope

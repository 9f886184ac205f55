// SPDX-License-Identifier: Apache-2.0
// Constants of the margins between classes [robustness-2].
#pragma once

#include "lipscope/robustness.h"

namespace lipscope {

// Pair by pair where there are few classes; for many, from constants of all logits together.
[[nodiscard]] PairConstants pair_constants(const Graph& graph, const Norm& norm,
                                           std::chrono::duration<double> time,
                                           const RunContext& context);

}  // namespace lipscope

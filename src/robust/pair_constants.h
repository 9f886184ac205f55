// SPDX-License-Identifier: Apache-2.0
// Constants of the margins between classes [robustness-2].
#pragma once

#include "lipscope/robustness.h"

namespace lipscope {

class MarginNeeds;

// First of all pairs from what they share, then pair by pair: those first whose constants decide
// most of what is asked, by `needs`; without it, and under a budget of work, all alike.
[[nodiscard]] PairConstants pair_constants(const Graph& graph, const Norm& norm, double seconds,
                                           const RunContext& context, const MarginNeeds* needs);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Constants of the margins between classes [robustness-2].
#pragma once

#include "lipscope/robustness.h"

namespace lipscope {

class MarginNeeds;

// By products of gains: little work, whatever the time.
[[nodiscard]] PairConstants cheap_pair_constants(const Graph& graph, const Norm& norm,
                                                 double seconds, const RunContext& context);

// First of all pairs from what they share, then pair by pair: those first whose constants decide
// most of what is asked, by `needs`; without it, and under a budget of work, all alike. `known`:
// the cheap ones, where they were found before.
[[nodiscard]] PairConstants pair_constants(const Graph& graph, const Norm& norm, double seconds,
                                           const RunContext& context, const MarginNeeds* needs,
                                           const PairConstants* known = nullptr);

}  // namespace lipscope

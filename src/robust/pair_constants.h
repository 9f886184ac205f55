// SPDX-License-Identifier: Apache-2.0
// Constants of the margins between classes [robustness-2].
#pragma once

#include "lipscope/robustness.h"

namespace lipscope {

class MarginNeeds;
class Problem;

// Of the graph of the problem, everywhere. By products of gains: little work, whatever the time.
[[nodiscard]] PairConstants cheap_pair_constants(Problem& problem, const Norm& norm, double seconds,
                                                 const RunContext& context);

// First of all pairs from what they share (robust/shared_margins.h), then pair by pair: those first
// whose constants decide most of what is asked, by `needs`; without it, and under a budget of work,
// all alike. `known`: the cheap ones, where they were found before.
[[nodiscard]] PairConstants pair_constants(Problem& problem, const Norm& norm, double seconds,
                                           const RunContext& context, const MarginNeeds* needs,
                                           const PairConstants* known = nullptr);

}  // namespace lipscope

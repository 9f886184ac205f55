// SPDX-License-Identifier: Apache-2.0
// How large networks may be. Certificates rest on these numbers: what is made to find a proof has
// to be made again to check it.
#pragma once

#include "lipscope/tensor.h"

namespace lipscope {

// Of a network of units.
inline constexpr Index kMostUnitEntries = 60'000;     // in all its nodes
inline constexpr Index kMostMapWeights = 20'000'000;  // in one affine map
inline constexpr double kMostMapProducts = 3e7;       // multiplications that make one map of two

// Of a chain of dense layers.
inline constexpr Index kMostChainWeights = 20'000'000;
inline constexpr double kMostReducedNumbers = 3e7;  // in all rows at a time while it is reduced
// Multiplications by which ranges of units are narrowed; what is above it keeps those of intervals.
inline constexpr double kMostRangeWork = 1e10;

// Numbers that the proof of a semidefinite bound holds.
inline constexpr double kMostProofDoubles = 5e8;

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Smaller ranges of the values before units on a whole bounded domain, each end by lines of its own
// that are recorded [local-17].
#pragma once

#include <cstdint>
#include <vector>

#include "pieces/slope_bounds.h"

namespace lipscope {

using SharpEnds = std::vector<CaseTree::SharpEnd>;

// Narrows ranges, layer by layer. False for lines of another network.
[[nodiscard]] bool apply_sharp_ends(const LayeredNet& net, const DomainSupport& domain,
                                    const SharpEnds& ends, PreactivationBounds& bounds);

// Between the mixes of a part and what is recorded of them: one number per unit of the layers
// before.
[[nodiscard]] std::vector<std::uint8_t> recorded_mixes(const LayeredNet& net, std::size_t layer,
                                                       const SlopeBounds& slopes,
                                                       const SlopeBounds::Part& part);
// False for those of another network.
[[nodiscard]] bool replay_mixes(const LayeredNet& net, const SlopeBounds& slopes,
                                const CaseTree::SharpEnd& end, SlopeBounds::Part& part);
// Takes over the ends that gain more than a share of the width; those of parts are lower, upper,
// lower, ... Tells which.
std::vector<bool> shrink_to_ends(const std::vector<std::size_t>& places,
                                 const std::vector<SlopeBounds::Part>& parts, double least,
                                 std::vector<Interval>& ranges);

}  // namespace lipscope

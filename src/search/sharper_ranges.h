// SPDX-License-Identifier: Apache-2.0
// Smaller ranges of the values before units on a whole bounded domain: each end has lines of its
// own, chosen by gradients [local-17].
#pragma once

#include <functional>
#include <vector>

#include "pieces/recorded_ranges.h"

namespace lipscope {

// Narrows ranges of units with a choice of slopes, from the second layer on, in so many steps each.
// `stop` costs tightness only. `found`, unless null: the ends that gain and their lines.
void sharpen_ranges(const LayeredNet& net, const DomainSupport& domain, int steps,
                    const std::function<bool()>& stop, PreactivationBounds& bounds,
                    SharpEnds* found);

// Multiplications of a step, about, where so many ends are sharpened as there are unstable units.
[[nodiscard]] double sharpening_cost(const LayeredNet& net, const PreactivationBounds& bounds);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// A network on a bounded domain as a small chain: units with one slope there are part of the affine
// maps around them [pieces-9].
#pragma once

#include <vector>

#include "net/layered_net.h"
#include "net/unit_network.h"

namespace lipscope {

// The units that keep more than one slope on the ranges, or are so close to it that sums in another
// order could say so.
[[nodiscard]] UnitNumbers unstable_units(const UnitNetwork& net,
                                         const std::vector<std::vector<Interval>>& ranges);

// The same function where the values are in the ranges: the listed units in layers, and sums that
// pass through. Nothing when another unit has more than one slope or when there would be more than
// `most` weights.
[[nodiscard]] Expected<LayeredNet> reduced_net(const UnitNetwork& net,
                                               const std::vector<std::vector<Interval>>& ranges,
                                               const UnitNumbers& unstable, Index most);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// A network on a bounded domain as a small chain: units with one slope there are part of the affine
// maps around them [pieces-9].
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pieces/layered_net.h"
#include "sdp/network.h"

namespace lipscope {

// Numbers of units, counted through all nodes of the network but the first and the last.
using UnitList = std::vector<std::size_t>;

// The units that keep more than one slope on the ranges, or are so close to it that sums in another
// order could say so.
[[nodiscard]] UnitList open_units(const SdpNetwork& net,
                                  const std::vector<std::vector<Interval>>& ranges);

// The same function where the values are in the ranges: the listed units in layers, and sums that
// pass through. Nothing, and `reason` set, when another unit has more than one slope or when there
// would be more than `most` weights.
[[nodiscard]] std::optional<LayeredNet> reduced_net(
    const SdpNetwork& net, const std::vector<std::vector<Interval>>& ranges, const UnitList& open,
    Index most, std::string& reason);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Ranges of the values before the units of a network with sparse maps, on a bounded domain: by
// intervals, and for units that those leave open by linear bounds that are propagated back to the
// input [pieces-9].
#pragma once

#include <functional>
#include <vector>

#include "bounds/domain_support.h"
#include "net/unit_network.h"

namespace lipscope {

// By node of the network, read with biases; nothing for its input and its output. Ranges may be
// infinite. Empty when stopped.
[[nodiscard]] std::vector<std::vector<Interval>> unit_ranges(const UnitNetwork& net,
                                                             const DomainSupport& domain,
                                                             const std::function<bool()>& stop);

}  // namespace lipscope

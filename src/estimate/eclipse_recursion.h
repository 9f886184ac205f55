// SPDX-License-Identifier: Apache-2.0
// Multipliers for the semidefinite bound in closed form [global-5]. Nothing here is proved:
// sdp/lmi.h is what turns multipliers into a bound.
#pragma once

#include <functional>
#include <optional>

#include "lipscope/bound.h"
#include "net/unit_network.h"

namespace lipscope {

// One pass from the input to the output. Nothing when a number leaves the range of doubles or
// `stop`, asked at each node, says so.
[[nodiscard]] std::optional<ChainProof> eclipse_multipliers(const UnitNetwork& network,
                                                            const std::function<bool()>& stop = {});

// The multipliers of a node and rho raised by (1 + e)^2 for each step to the output: room for
// rounding.
[[nodiscard]] ChainProof raised(const UnitNetwork& network, ChainProof proof, double e);

}  // namespace lipscope

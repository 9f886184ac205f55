// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "lipscope/norm.h"
#include "net/unit_network.h"

namespace lipscope {

// Upper bound of |dy| / |dx| by the loop transformation [global-6], every rounding included; +inf
// when it leaves the range of doubles or `stop`, asked now and then, says so. Any network, any
// norms.
[[nodiscard]] double loop_transform_up(const UnitNetwork& network, const NormPair& norms,
                                       const std::function<bool()>& stop = {});
// Multiplications, about.
[[nodiscard]] double loop_transform_cost(const UnitNetwork& network, const NormPair& norms);

}  // namespace lipscope

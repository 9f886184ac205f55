// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "lipscope/norm.h"
#include "net/unit_network.h"

namespace lipscope {

// A chain, l2 to l2.
[[nodiscard]] std::string why_no_seqlip(const UnitNetwork& network, const NormPair& norms);

// Upper bound of |dy| / |dx| layer by layer [global-7], every rounding included; +inf when it
// leaves the range of doubles or `stop`, asked at each layer, says so.
[[nodiscard]] double seqlip_up(const UnitNetwork& network, const NormPair& norms,
                               const std::function<bool()>& stop = {});
// Multiplications, about.
[[nodiscard]] double seqlip_cost(const UnitNetwork& network, const NormPair& norms);

}  // namespace lipscope

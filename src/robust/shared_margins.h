// SPDX-License-Identifier: Apache-2.0
// What the semidefinite bounds of all margins share: one proof for everything before the last
// functions [global-8].
#pragma once

#include <optional>
#include <span>

#include "robust/margin_sdp.h"

namespace lipscope {

// A small network whose margins have constants that are at least those of the given one, proved.
// `weights`: by pair, in the order of PairConstants, how much its squared constant counts. Nothing
// where there is none or the budget does not suffice.
[[nodiscard]] std::optional<MarginSdp> shared_margins(const MarginSdp& margins,
                                                      std::span<const double> weights,
                                                      const OwnBudget& budget);

}  // namespace lipscope

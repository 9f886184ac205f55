// SPDX-License-Identifier: Apache-2.0
// Good multipliers for the semidefinite bound of a chain. Nothing here is proved: sdp/lmi.h is what
// turns multipliers into a bound.
#pragma once

#include <functional>
#include <optional>

#include "sdp/lmi.h"

namespace lipscope {

struct LipsdpResult {
  Multipliers multipliers;
  double rho = 0;   // what they should prove
  double dual = 0;  // no multipliers can prove less than this

  // rho and the multipliers raised together: room for rounding in every direction.
  [[nodiscard]] LipsdpResult raised(double slack) const;
};

// Calls `found` with better and better multipliers until the gap sqrt(rho / dual) - 1 is below
// `gap`, `stop` says so or nothing improves any more.
void solve_lipsdp(const Chain& chain, double gap, const std::function<bool()>& stop,
                  const std::function<void(const LipsdpResult&)>& found);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Good multipliers for the semidefinite bound. Nothing here is proved: sdp/lmi.h is what turns
// multipliers into a bound.
#pragma once

#include <functional>

#include "lipscope/run_clock.h"
#include "sdp/lmi.h"

namespace lipscope {

struct LipsdpGuess {
  Multipliers multipliers;
  double rho = 0;   // what they may prove
  double dual = 0;  // no multipliers can prove less than this
};

// Offers better and better multipliers to `prove`, which says whether they did, until they prove a
// gap sqrt(rho / dual) - 1 of at most `gap`, `stop` says so or nothing improves any more.
void solve_lipsdp(const SdpNetwork& network, double gap, const RunClock& clock,
                  const std::function<bool()>& stop,
                  const std::function<bool(const LipsdpGuess&)>& prove);

}  // namespace lipscope

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
void solve_lipsdp(const UnitNetwork& network, double gap, const RunClock& clock,
                  const std::function<bool()>& stop,
                  const std::function<bool(const LipsdpGuess&)>& prove);

// Multipliers for rho = 1 that make the sum of the squared constants of the outputs small, each of
// them for itself [global-8]: up to about `gap` in its root. Offered to `prove` wider and wider
// until it says that they are of use.
void solve_lipsdp_of_each(const UnitNetwork& network, double gap, const std::function<bool()>& stop,
                          const std::function<bool(const Multipliers&)>& prove);

}  // namespace lipscope

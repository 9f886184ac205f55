// SPDX-License-Identifier: Apache-2.0
#include "estimate/computed_bound.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "net/problem.h"
#include "sdp/network_bounds.h"

namespace lipscope {

void report_network_bound(const MethodRun& run, std::string_view name, double share_of_time) {
  constexpr double kPerSecond = 5e9;  // multiplications
  const NetworkBound* bound = find_network_bound(name);
  LIPSCOPE_CHECK(bound != nullptr);
  const Expected<UnitNetwork>& network = run.problem.units();
  if (!network) return run.decline(network.reason());
  const NormPair& norms = run.query.norms;
  if (const std::string reason = bound->unsupported(*network, norms); !reason.empty())
    return run.decline(reason);
  const double seconds = bound->cost(*network, norms) / kPerSecond;
  const double left = run.seconds_left();
  if (seconds > share_of_time * left) {
    return run.decline(fmt::format(
        "no quick answer: about {:.1f} s of the {:.0f} s left; see --time", seconds, left));
  }
  const double upper = claim_of(bound->upper(*network, norms, [&] { return run.should_stop(); }));
  if (!std::isfinite(upper)) {
    return run.decline(run.should_stop() ? "stopped" : "the bound is above the largest double");
  }
  run.report({upper, Guarantee::kProved, std::string(name)},
             {.proof = RecomputedProof{std::string(name)}});
}

}  // namespace lipscope

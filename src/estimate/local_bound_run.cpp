// SPDX-License-Identifier: Apache-2.0
#include "estimate/local_bound_run.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "base/parallel.h"
#include "estimate/piece_run.h"
#include "net/problem.h"
#include "pieces/bounded_region.h"
#include "pieces/local_bounds.h"
#include "sdp/network_bounds.h"

namespace lipscope {

std::string why_no_local_bound(const Query& query, std::string_view name) {
  if (query.domain.everywhere()) return "the domain is the whole space";
  const Graph& graph = *query.graph;
  Index inputs = 0;
  for (const ValueId id : graph.inputs()) inputs += element_count(graph.value(id).type.shape);
  const Index outputs = element_count(graph.value(graph.outputs()[0]).type.shape);
  return find_local_bound(name)->unsupported(query.norms, inputs, outputs);
}

void report_local_bound(const MethodRun& run, std::string_view name,
                        std::optional<BetterBound> better) {
  constexpr double kPerSecond = 5e9;  // multiplications
  const double share_of_time = run.named ? 1 : 0.1;
  const LocalBound* bound = find_local_bound(name);
  LIPSCOPE_CHECK(bound != nullptr);
  const Expected<LocalNet>& found = run.problem.local_chain();
  if (!found) return run.decline(found.reason());
  const LayeredNet* net = found->net.get();
  const NormPair& norms = run.query.norms;
  const double left = run.seconds_left();
  const auto seconds = [&](const LocalBound& of) {
    return (forward_cost(*net) + of.cost(*net, norms)) / kPerSecond;
  };
  if (!run.named && better && seconds(*find_local_bound(better->name)) <= share_of_time * left) {
    return run.decline(fmt::format("{} {}", better->name, better->why));
  }
  if (seconds(*bound) > share_of_time * left) {
    return run.decline(
        fmt::format("about {:.1f} s of the {:.0f} s left; see --time", seconds(*bound), left));
  }
  BoundedRegion region(*net, run.query.domain);
  if (!region.usable()) return run.decline("values that are not bounded on the domain");
  const double upper =
      claim_of(local_bound_up(*bound, *net, region, norms, [&] { return run.should_stop(); }));
  if (!std::isfinite(upper))
    return run.decline(run.should_stop() ? "stopped" : "the bound is above the largest double");
  run.report({upper, Guarantee::kProved, std::string(name)},
             {.proof = RecomputedProof{std::string(name), found->unstable}});
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Bounds that have no evidence: computed again by the code that computed them first, with the same
// effort.
#include "attention/expansion.h"
#include "bounds/graph_jacobian.h"
#include "pieces/bounded_region.h"
#include "pieces/local_bounds.h"
#include "proof/verify.h"
#include "sdp/network_bounds.h"

namespace lipscope {
namespace {

bool never() { return false; }

// A bound of the graph itself on the domain.
template <class Unsupported, class Bound>
double bound_of_graph(const std::string& name, const Problem& problem, Unsupported&& unsupported,
                      Bound&& bound) {
  if (const std::string reason = unsupported(problem.graph(), problem.domain()); !reason.empty())
    reject("{}: {}", name, reason);
  return bound(problem.graph(), problem.norms(), problem.domain(), never).upper;
}

double bound_on_domain(const LocalBound& bound, const RecomputedProof& proof, Problem& problem) {
  if (problem.domain().everywhere()) reject("{} needs a bounded domain", bound.name);
  const LocalNet local = needed(problem.local_chain(proof.unstable_units));
  const LayeredNet& net = *local.net;
  const NormPair& norms = problem.norms();
  if (const std::string reason = bound.unsupported(norms, net.inputs(), net.outputs());
      !reason.empty())
    reject("{}: {}", bound.name, reason);
  BoundedRegion region(net, problem.domain());
  if (!region.usable()) reject("values that are not bounded on the domain");
  return local_bound_up(bound, net, region, norms, never);
}

}  // namespace

double proved_by(const RecomputedProof& proof, Problem& problem) {
  if (proof.bound == "expansion")
    return bound_of_graph(proof.bound, problem, expansion_unsupported, expansion_bound);
  if (proof.bound == "graph-jacobian")
    return bound_of_graph(proof.bound, problem, graph_jacobian_unsupported, graph_jacobian_bound);
  if (const LocalBound* local = find_local_bound(proof.bound))
    return bound_on_domain(*local, proof, problem);
  const NetworkBound* bound = find_network_bound(proof.bound);
  if (bound == nullptr) reject("there is no bound '{}'", proof.bound);
  const UnitNetwork& network = needed(problem.units());
  if (const std::string reason = bound->unsupported(network, problem.norms()); !reason.empty())
    reject("{}: {}", proof.bound, reason);
  return bound->upper(network, problem.norms(), never);
}

}  // namespace lipscope

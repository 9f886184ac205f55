// SPDX-License-Identifier: Apache-2.0
#include "pieces/bounded_region.h"
#include "pieces/case_bound.h"
#include "pieces/cone_region.h"
#include "proof/verify.h"

namespace lipscope {

double proved_by(const CaseProof& proof, Problem& problem) {
  const LocalNet local = needed(problem.local_chain(proof.unstable_units));
  const LayeredNet& net = *local.net;
  const auto parts = search_decomposition_of(problem.norms(), net.inputs(), net.outputs());
  if (!parts) reject("cases prove no bound in these norms");
  const CaseTree& tree = *proof.tree;
  if (problem.domain().everywhere()) {
    ConeRegion region(net);
    return confirmed_bound(net, *parts, region, tree);
  }
  BoundedRegion region(net, problem.domain());
  if (!region.usable()) reject("values that are not bounded on the domain");
  if (!region.sharpen(tree.sharp_ends)) reject("lines of another network");
  for (const Multipliers& round : tree.narrowing) {
    if (!region.narrow(round)) reject("multipliers that narrow no ranges");
  }
  return confirmed_bound(net, *parts, region, tree);
}

}  // namespace lipscope

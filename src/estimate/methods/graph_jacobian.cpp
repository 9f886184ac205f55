// SPDX-License-Identifier: Apache-2.0
// graph-jacobian: the Jacobian enclosed on a box or ball, entry by entry.
//
// Needs      a box or ball; few outputs or few inputs; operators with derivatives on boxes.
// Gives      proved upper bound, in any norms.
// Cost       linear bounds of all values before units, and a row of the Jacobian per output.
// Certifies  by name: the checker computes the bound anew.
// Theory     docs/theory/local.md [local-14].
#include "bounds/graph_jacobian.h"

#include <cmath>

#include "estimate/method.h"
#include "net/problem.h"
#include "sdp/network_bounds.h"

namespace lipscope {
namespace {

std::string graph_jacobian_query_unsupported(const Query& query) {
  return graph_jacobian_unsupported(*query.graph, query.domain);
}

void run_graph_jacobian(const MethodRun& run) {
  if (!run.named && run.problem.local_chain())
    return run.decline("exact-local is made for such networks");
  const GraphJacobian found = graph_jacobian_bound(
      *run.query.graph, run.query.norms, run.query.domain, [&] { return run.should_stop(); });
  const double upper = claim_of(found.upper);
  if (!std::isfinite(upper)) return run.decline(found.reason);
  run.report({upper, Guarantee::kProved, "graph-jacobian"},
             {.proof = RecomputedProof{"graph-jacobian"}});
}

}  // namespace

std::vector<Method> method_graph_jacobian() {
  return {{.info = {.id = "graph-jacobian",
                    .side = "upper",
                    .summary = "the Jacobian enclosed on ranges by linear bounds, in any graph",
                    .theory = "local-14",
                    .guarantee = Guarantee::kProved},
           .unsupported = graph_jacobian_query_unsupported,
           .run = run_graph_jacobian,
           .all_or_nothing = true,
           .share = 0.5}};
}

}  // namespace lipscope

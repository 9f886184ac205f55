// SPDX-License-Identifier: Apache-2.0
// expansion: the Jacobian at the centre of a ball, and how far others on the ball are from it.
//
// Needs      a ball; attention of the plain kind, functions of single entries, affine operators.
// Gives      proved upper bound; at radius 0 the l2 norm of the Jacobian up to rounding. In other
//            norms it is larger by as much as they differ from l2.
// Cost       a row of the Jacobian in interval arithmetic for each input of a unit.
// Certifies  by name: the checker computes the bound anew.
// Theory     docs/theory/attention.md [attention-18].
#include "attention/expansion.h"

#include <cmath>

#include "estimate/method.h"
#include "net/problem.h"
#include "sdp/network_bounds.h"

namespace lipscope {
namespace {

std::string expansion_query_unsupported(const Query& query) {
  return expansion_unsupported(*query.graph, query.domain);
}

void run_expansion(const MethodRun& run) {
  if (!run.named && run.has_answered("local-lipsdp"))
    return run.decline("local-lipsdp is made for such networks");
  if (!run.named && run.has_answered("graph-jacobian"))
    return run.decline("graph-jacobian is closer");
  const bool euclidean = run.query.norms == NormPair{Norm(2), Norm(2)};
  if (!run.named && !euclidean && run.problem.local_chain())
    return run.decline("exact-local is made for such networks");
  const Expansion found = expansion_bound(*run.query.graph, run.query.norms, run.query.domain,
                                          [&] { return run.should_stop(); });
  const double upper = claim_of(found.upper);
  if (!std::isfinite(upper)) return run.decline(found.reason);
  run.report({upper, Guarantee::kProved, "expansion"}, {.proof = RecomputedProof{"expansion"}});
}

}  // namespace

std::vector<Method> method_expansion() {
  return {{.info = {.id = "expansion",
                    .side = "upper",
                    .summary = "the Jacobian at the centre of a ball and how far others can be",
                    .theory = "attention-18",
                    .guarantee = Guarantee::kProved},
           .unsupported = expansion_query_unsupported,
           .run = run_expansion,
           .all_or_nothing = true,
           .share = 0.5}};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// loop-transform: upper bound from the linear part of every activation and what is left of it.
//
// Needs      functions of single entries with affine maps between them (see lipsdp); any norms.
// Gives      upper bound, proved: products of the maps and their norms with all rounding. Never
//            above the product of the layers' norms and slopes; in l1 and linf, where bounds of
//            single entries join in, often a fraction of it. In l2 never below what lipsdp can
//            prove.
// Cost       a product and a norm for each pair of layers: half the square of the depth times cubes
//            of the layer sizes. At most a hundredth of the time left in l2, a quarter otherwise.
// Certifies  its name: proof/recomputed.cpp computes the bound again.
// Theory     docs/theory/global.md [global-6].
#include "estimate/computed_bound.h"
#include "estimate/method.h"
#include "estimate/sdp_query.h"

namespace lipscope {
namespace {

std::string loop_transform_unsupported(const Query&) { return {}; }

void run_loop_transform(const MethodRun& run) {
  const bool others_know_more = why_not_euclidean(run.query).empty();
  report_network_bound(run, "loop-transform", others_know_more ? 0.01 : 0.25);
}

}  // namespace

std::vector<Method> method_loop_transform() {
  return {{.info = {.id = "loop-transform",
                    .side = "upper",
                    .summary = "linear part of every activation and what is left, all paths",
                    .theory = "global-6",
                    .guarantee = Guarantee::kProved},
           .unsupported = loop_transform_unsupported,
           .run = run_loop_transform,
           .all_or_nothing = true,
           .share = 0.2}};
}

}  // namespace lipscope

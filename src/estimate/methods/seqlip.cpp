// SPDX-License-Identifier: Apache-2.0
// seqlip: upper bound from how far the strongest directions of neighbouring layers can meet.
//
// Needs      a chain of functions of single entries with affine maps between them, l2 to l2 (a
//            scalar output has any norm).
// Gives      upper bound, proved: the closed form for pairs of layers with enclosures of its
//            singular values and directions; for layers of up to 12 units the largest norm over all
//            patterns instead. Never above the product of the layers' norms and slopes, up to 1e-5;
//            with one small hidden layer the best bound there is without regard to which patterns
//            occur. Never the value of the greedy search, which is no bound.
// Cost       one norm per layer, 4096 small ones for an enumerated layer. At most 1/200 of the time
//            left.
// Certifies  its name: proof/recomputed.cpp computes the bound again.
// Theory     docs/theory/global.md [global-7].
#include "estimate/computed_bound.h"
#include "estimate/method.h"
#include "estimate/sdp_query.h"

namespace lipscope {
namespace {

void run_seqlip(const MethodRun& run) { report_network_bound(run, "seqlip", 0.005); }

}  // namespace

std::vector<Method> method_seqlip() {
  return {{.info = {.id = "seqlip",
                    .side = "upper",
                    .summary =
                        "strongest directions of neighbouring layers, all patterns of small ones",
                    .theory = "global-7",
                    .guarantee = Guarantee::kProved},
           .unsupported = why_not_euclidean,
           .run = run_seqlip,
           .all_or_nothing = true,
           .share = 0.2}};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// fast-lip: upper bound from the Jacobian in interval arithmetic, on a box or ball.
//
// Needs      a box or ball; dense, convolutional or residual layers with functions of single
//            entries, perhaps a softmax at the end, small enough for dense matrices. Any norms.
// Gives      upper bound, proved: the norm of the largest absolute entries, or of the middles and
//            radii, whichever is smaller. Exact where no unit changes its slope.
// Cost       ranges of all units by linear bounds, then three products with each layer's weights
//            per output. The cheapest local bound, and the loosest; left out by default where
//            linear-jacobian is affordable.
// Certifies  its name: the checker computes it again.
// Theory     docs/theory/local.md [local-8].
#include "estimate/local_bound_run.h"

namespace lipscope {
namespace {

std::string fast_lip_unsupported(const Query& query) {
  return why_no_local_bound(query, "fast-lip");
}
void run_fast_lip(const MethodRun& run) {
  report_local_bound(run, "fast-lip",
                     BetterBound{"linear-jacobian", "is never larger, and quick here"});
}

}  // namespace

std::vector<Method> method_fast_lip() {
  return {{.info = {.id = "fast-lip",
                    .side = "upper",
                    .summary = "Jacobian in interval arithmetic, on a box or ball",
                    .theory = "local-8",
                    .guarantee = Guarantee::kProved},
           .unsupported = fast_lip_unsupported,
           .run = run_fast_lip,
           .all_or_nothing = true,
           .share = 0.2}};
}

}  // namespace lipscope

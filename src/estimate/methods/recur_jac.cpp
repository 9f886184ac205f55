// SPDX-License-Identifier: Apache-2.0
// recur-jac: upper bound from intervals of the Jacobian that go through layers of one sign, on a
// box or ball.
//
// Needs      what fast-lip needs. Any norms.
// Gives      upper bound, proved, never above fast-lip: where a derivative has one sign, its best
//            slope is known and the layers on both sides are taken together.
// Cost       a backward pass from every value of every layer, per output; left out by default where
//            linear-jacobian is affordable, which costs the same.
// Certifies  its name: the checker computes it again.
// Theory     docs/theory/local.md [local-9].
#include "estimate/local_bound_run.h"

namespace lipscope {
namespace {

std::string recur_jac_unsupported(const Query& query) {
  return why_no_local_bound(query, "recur-jac");
}
void run_recur_jac(const MethodRun& run) {
  report_local_bound(run, "recur-jac",
                     BetterBound{"linear-jacobian", "costs as much and is hardly ever larger"});
}

}  // namespace

std::vector<Method> method_recur_jac() {
  return {{.info = {.id = "recur-jac",
                    .side = "upper",
                    .summary = "intervals of the Jacobian through layers of one sign",
                    .theory = "local-9",
                    .guarantee = Guarantee::kProved},
           .unsupported = recur_jac_unsupported,
           .run = run_recur_jac,
           .all_or_nothing = true,
           .share = 0.2}};
}

}  // namespace lipscope

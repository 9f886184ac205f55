// SPDX-License-Identifier: Apache-2.0
// linear-jacobian: upper bound from linear bounds of the backward pass, on a box or ball.
//
// Needs      what fast-lip needs. Any norms.
// Gives      upper bound, proved, never above fast-lip: products of a slope and a value that both
//            vary lie below chords. Sums of absolute entries (l-infinity to l-infinity, l1 to l1)
//            are bounded as one linear function, other norms by the entries' ranges.
// Cost       a backward pass from every value of every layer, per output (per input from l1).
// Certifies  its name: the checker computes it again.
// Theory     docs/theory/pieces.md [pieces-3], docs/theory/local.md [local-9].
#include "estimate/local_bound_run.h"

namespace lipscope {
namespace {

std::string linear_jacobian_unsupported(const Query& query) {
  return why_no_local_bound(query, "linear-jacobian");
}

void run_linear_jacobian(const MethodRun& run) {
  if (!run.named && why_no_local_bound(run.query, "gram-l2").empty())
    return run.decline("gram-l2 and local-lipsdp are made for these norms");
  if (!run.named && run.has_answered("exact-local"))
    return run.decline("exact-local began with this bound");
  report_local_bound(run, "linear-jacobian");
}

}  // namespace

std::vector<Method> method_linear_jacobian() {
  return {{.info = {.id = "linear-jacobian",
                    .side = "upper",
                    .summary = "linear bounds of the backward pass, on a box or ball",
                    .theory = "local-9",
                    .guarantee = Guarantee::kProved},
           .unsupported = linear_jacobian_unsupported,
           .run = run_linear_jacobian,
           .all_or_nothing = true,
           .share = 0.2}};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// gram-l2: upper bound of lengths of gradients from the Gram matrix of the first weights, on a box
// or ball.
//
// Needs      what fast-lip needs; l2 to l2, l2 to l-infinity (or one output), or l1 to l2.
// Gives      upper bound, proved: derivatives by the values behind the first units lie in a box
//            (linear bounds of the backward pass), and a diagonal matrix above the Gram matrix
//            bounds their length for all of it. For one row never above the length of the largest
//            entries that this box allows.
// Cost       a backward pass from every value of every layer but the first, per output; then thirty
//            sweeps and one factorisation of a matrix of the size of the first layer.
// Certifies  its name: the checker computes it again.
// Theory     docs/theory/local.md [local-10].
#include "estimate/local_bound_run.h"

namespace lipscope {
namespace {

std::string gram_l2_unsupported(const Query& query) { return why_no_local_bound(query, "gram-l2"); }
void run_gram_l2(const MethodRun& run) { report_local_bound(run, "gram-l2"); }

}  // namespace

std::vector<Method> method_gram_l2() {
  return {{.info = {.id = "gram-l2",
                    .side = "upper",
                    .summary = "lengths of gradients by a Gram matrix, on a box or ball",
                    .theory = "local-10",
                    .guarantee = Guarantee::kProved},
           .unsupported = gram_l2_unsupported,
           .run = run_gram_l2,
           .all_or_nothing = true,
           .share = 0.2}};
}

}  // namespace lipscope

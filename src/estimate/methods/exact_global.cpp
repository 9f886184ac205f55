// SPDX-License-Identifier: Apache-2.0
// exact-global: upper and lower bound from a search over the linear pieces, in the whole space.
//
// Needs      dense, convolutional or residual layers with functions of single entries, small enough
//            for dense matrices; input and output norms of l1, l2 or l-infinity. Splits units
//            that are linear between kinks (ReLU, PReLU, Abs, Clip, HardSigmoid, maxima);
//            others get the root's bound.
// Gives      upper bound, proved, at any time; exact up to 1e-7 when the search ends, but not from
//            l-infinity to l2, l2 to l1 or l-infinity to l1 when there are more than ten inputs,
//            outputs, or both. Pieces that exist nowhere are left out only with a proof. Lower
//            bounds at points inside pieces, proved.
// Cost       one bound per set of pieces: cubes of the layer sizes. Some dozen units take
//            milliseconds to minutes; the time grows exponentially with their number. A quick try
//            first for small networks, then half of the time left, less where units are many.
// Certifies  the tree of splits, multipliers of its leaves, weights that prove leaves empty.
// Theory     docs/theory/pieces.md.
#include "estimate/piece_run.h"
#include "search/cone_search.h"

namespace lipscope {
namespace {

std::string exact_global_unsupported(const Query& query) {
  if (!query.domain.everywhere()) return "the domain is not the whole space";
  return why_no_pieces(query);
}

std::unique_ptr<SearchRegion> region_of_exact_global(const LayeredNet& net, const Domain&,
                                                     std::string&) {
  return std::make_unique<ConeSearch>(net);
}

void run_exact_global(const MethodRun& run) {
  search_pieces(run, {.name = "exact-global",
                      .share = 0.5,
                      .most_weights = kMostChainWeights,
                      .make_region = region_of_exact_global});
}
void run_exact_global_first(const MethodRun& run) {
  search_pieces(run, {.name = "exact-global",
                      .share = 0.1,
                      .most_seconds = 0.1,
                      .most_weights = 20'000,
                      .make_region = region_of_exact_global});
}

}  // namespace

std::vector<Method> method_exact_global() {
  return {{.info = {.id = "exact-global",
                    .side = "upper",
                    .summary = "branch and bound over the linear pieces, in the whole space",
                    .theory = "pieces-5",
                    .guarantee = Guarantee::kProved},
           .unsupported = exact_global_unsupported,
           .run = run_exact_global,
           .run_first = run_exact_global_first}};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// exact-local: upper and lower bound from a search over values before units, on a box or ball.
//
// Needs      a box, a ball or both; dense, convolutional or residual layers with functions of
//            single entries, small enough for dense matrices; the norms of exact-global.
// Gives      upper bound, proved, at any time; exact up to 1e-7 when the search ends and all units
//            are linear between kinks (ReLU, Clip, HardSigmoid, maxima); not for the norms that
//            exact-global excepts. Parts of the domain are
//            left out only with a proof that they are empty. Lower bounds at points it comes
//            across, proved.
// Cost       linear bounds of all layers, one bound of the Jacobian and one small linear program
//            per part. Twenty to thirty units of both signs take seconds; the time grows
//            exponentially with their number. A quick try first for small networks, then three
//            quarters of the time left, less where units are many.
// Certifies  the tree of splits, multipliers of its leaves, weights that prove leaves empty,
//            lines for ends of ranges in deep networks of curves.
// Theory     docs/theory/pieces.md, [local-17].
#include "estimate/piece_run.h"
#include "search/bounded_search.h"

namespace lipscope {
namespace {

std::string exact_local_unsupported(const Query& query) {
  if (query.domain.everywhere()) return "the domain is the whole space";
  return why_no_pieces(query);
}

std::unique_ptr<SearchRegion> region_of_exact_local(const LayeredNet& net, const Domain& domain,
                                                    std::string& reason) {
  auto region = std::make_unique<BoundedSearch>(net, domain);
  if (region->usable()) return region;
  reason = "values that are not bounded on the domain";
  return nullptr;
}

void run_exact_local(const MethodRun& run) {
  search_pieces(run, {.name = "exact-local",
                      .share = 0.75,
                      .most_weights = kMostChainWeights,
                      .reduces = true,
                      .make_region = region_of_exact_local});
}
void run_exact_local_first(const MethodRun& run) {
  search_pieces(run, {.name = "exact-local",
                      .share = 0.1,
                      .most_seconds = 0.1,
                      .most_weights = 50'000,
                      .make_region = region_of_exact_local});
}

}  // namespace

std::vector<Method> method_exact_local() {
  return {{.info = {.id = "exact-local",
                    .side = "upper",
                    .summary = "branch and bound over the linear pieces, on a box or ball",
                    .theory = "pieces-5",
                    .guarantee = Guarantee::kProved},
           .unsupported = exact_local_unsupported,
           .run = run_exact_local,
           .run_first = run_exact_local_first}};
}

}  // namespace lipscope

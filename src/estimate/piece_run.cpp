// SPDX-License-Identifier: Apache-2.0
#include "estimate/piece_run.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "base/rounding.h"
#include "estimate/point_prover.h"
#include "net/problem.h"
#include "pieces/local_bounds.h"
#include "search/bounded_search.h"
#include "search/search.h"
#include "search/slope_ascent.h"

namespace lipscope {
namespace {

// Lines chosen for each end of a range gain where lines through several layers of curves are far
// from these; else the ranges hardly change [local-17].
SharpEnds sharpened(const LayeredNet& net, SearchRegion& region, double seconds,
                    const MethodRun& run) {
  constexpr int kFewest = 3, kMost = 10;
  constexpr double kShare = 0.25, kPerSecond = 5e9;
  auto* bounded = dynamic_cast<BoundedSearch*>(&region);
  if (bounded == nullptr || net.hidden() < kDeepCurves || net.piecewise_linear()) return {};
  const double step_seconds = 2 * bounded->sharpening_cost() / kPerSecond;
  const double steps = std::min<double>(kMost, std::floor(kShare * seconds / step_seconds) - 1);
  if (!(steps >= kFewest)) return {};
  return bounded->sharpen(static_cast<int>(steps), [&] { return run.should_stop(); });
}

}  // namespace

std::string why_no_pieces(const Query& query) {
  const Graph& graph = *query.graph;
  const Index outputs = element_count(graph.value(graph.outputs()[0]).type.shape);
  Index inputs = 0;
  for (const ValueId id : graph.inputs()) inputs += element_count(graph.value(id).type.shape);
  return search_decomposition_of(query.norms, inputs, outputs) ? "" : "no search for these norms";
}

Expected<LocalNet> small_chain(Problem& problem, Index most) {
  if (problem.network() && chain_size(*problem.network()) > most) return too_large_a_chain(most);
  return problem.local_chain(std::nullopt);
}

double root_seconds(const LayeredNet& net, const NormDecomposition& parts, bool bounded) {
  double cost = 0, behind = 0;
  for (std::size_t k = net.layers.size(); k-- > 0;) {
    const double rows = static_cast<double>(net.layers[k].out);
    const double cols = static_cast<double>(net.layers[k].in);
    cost += parts.norm == 2 ? 4 * rows * rows * (rows + cols) : 2 * cols * behind;
    behind += rows * cols;
  }
  return (cost * static_cast<double>(parts.count) + (bounded ? forward_cost(net) : 0)) / 5e9;
}

double claim_of_cases(double upper) { return mul_up(upper, 1 + 0x1p-36); }

void search_pieces(const MethodRun& run, const PieceRun& how) {
  // Where one affine layer is all that is left on the domain there is nothing to search.
  if (!how.reduces && !run.problem.units()) return run.decline(run.problem.units().reason());
  const Expected<LocalNet> local =
      how.reduces ? run.problem.local_chain() : small_chain(run.problem, how.most_weights);
  if (!local) return run.decline(local.reason());
  const LayeredNet* net = local->net.get();
  std::string reason;
  const NormDecomposition parts =
      *search_decomposition_of(run.query.norms, net->inputs(), net->outputs());
  // Where there are many units, searches for lower bounds need time, too; less among curves, where
  // gradients lead to the top.
  constexpr Index kMany = 60, kVeryMany = 150;
  Index units = 0;
  for (std::size_t k = 0; k < net->hidden(); ++k) units += net->layers[k].out;
  const bool curved = !net->piecewise_linear();
  const double share = how.share * (units > kVeryMany ? 0.3 : units > kMany && !curved ? 0.5 : 1);
  const double seconds = std::min(how.most_seconds, share * run.seconds_left());
  if (root_seconds(*net, parts, !run.query.domain.everywhere()) > seconds)
    return run.decline("too large for a bound in the time left; see --time");
  const auto region = how.make_region(*net, run.query.domain, reason);
  if (!region) return run.decline(reason);
  const SharpEnds sharp = sharpened(*net, *region, seconds, run);
  PointProver prover(run, *net, parts, *region, how.name);
  PieceSearch search(
      *net, parts, *region, [&](const std::vector<double>& x) { return prover.try_point(x); },
      run.proved_lower());
  const double start = run.now(), end = start + seconds;
  double reported = kInf, first = kInf;
  const auto report = [&] {
    const double upper = claim_of_cases(search.upper());
    if (!(upper < reported)) return;
    reported = upper;
    CaseTree tree = search.tree();
    tree.sharp_ends = sharp;
    run.report(
        {upper, Guarantee::kProved, std::string(how.name)},
        {.proof = CaseProof{std::make_shared<const CaseTree>(std::move(tree)), local->unstable}});
  };
  const double ratio = 1 + 0.1 * (std::min(run.target_ratio, 1.01) - 1);
  for (double slice = 0.05; slice < 1e6; slice *= 1.5) {
    const double until = std::min(end, run.now() + slice);
    const bool stopped = search.run(ratio, [&] { return run.should_stop() || run.passed(until); });
    report();
    if (!stopped || run.should_stop() || run.passed(end)) break;
    // Where three seconds close next to nothing of the gap, minutes will not close much.
    if (first == kInf) first = search.upper();
    const double gap = first - run.proved_lower();
    if (run.now() - start > 3 && first - search.upper() < (curved ? 0.01 : 0.03) * gap) break;
  }
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// local-lipsdp: upper bound from the semidefinite relaxation with the slopes of a box or ball,
// whose own constants narrow the ranges of units.
//
// Needs      a box or ball; dense, convolutional or residual layers with functions of single
//            entries, small enough for dense matrices; l2 to l2, l2 to l-infinity (or one output),
//            or l1 to l2.
// Gives      upper bound, proved. Slopes come from ranges by linear bounds, not from intervals as
// in
//            lipsdp; the recursion bounds every unit's constant on the way, hence how far its value
//            moves, and the next round has fewer units of both signs. Deep networks on small l2
//            balls gain most.
// Cost       up to six times a semidefinite bound: cubes of the layer sizes.
// Certifies  the multipliers of every round, and those of the bound itself.
// Theory     docs/theory/local.md [local-11].
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "base/rounding.h"
#include "estimate/local_bound_run.h"
#include "estimate/piece_run.h"
#include "net/problem.h"
#include "pieces/bounded_region.h"
#include "search/multiplier_search.h"

namespace lipscope {
namespace {

std::string local_lipsdp_unsupported(const Query& query) {
  return why_no_local_bound(query, "gram-l2");  // the same norms
}

// The semidefinite bound of one output or of all, for slopes that shrink from call to call.
class Solver {
 public:
  Solver(const LayeredNet& net, std::optional<Index> row) : bound_(net, row), search_(net, row) {}

  struct Found {
    double upper = kInf;
    Multipliers multipliers;
  };
  Found solve(const Slopes& slopes, const std::function<bool()>& stop) {
    constexpr int kSteps = 40, kQuietSteps = 4;
    constexpr double kWorthwhile = 1e-3;
    search_.restrict_to(slopes);
    Found best;
    for (const auto& layer : slopes) best.multipliers.emplace_back(layer.size(), 0.0);
    best.upper = bound_.upper_bound(slopes, best.multipliers);
    for (int since = 0; since < kQuietSteps && !stop(); ++since) {
      const double before = best.upper;
      for (int step = 0; step < kSteps; ++step) search_.step();
      // Up to a margin that proves something, then down as long as that helps.
      while (!try_margin(slopes, best) && margin_ < 2) margin_ *= 1.6;
      for (int down = 0; down < 6; ++down) {
        const double works = margin_;
        margin_ /= 1.6;
        if (try_margin(slopes, best)) continue;
        margin_ = works;
        break;
      }
      if (best.upper < before * (1 - kWorthwhile)) since = -1;
      if (best.upper < search_.value() * (1 + kWorthwhile)) break;
    }
    return best;
  }

 private:
  // Whether multipliers with the margin prove anything.
  bool try_margin(const Slopes& slopes, Found& best) {
    Multipliers trial = search_.multipliers(margin_);
    shorten(trial);
    const double upper = bound_.upper_bound(slopes, trial);
    if (upper < best.upper) best = {upper, std::move(trial)};
    return std::isfinite(upper);
  }

  EuclideanBound bound_;
  MultiplierSearch search_;
  double margin_ = 1e-3;
};

void run_local_lipsdp(const MethodRun& run) {
  constexpr int kRounds = 6;
  const double share_of_time = run.named ? 1 : 0.1;
  const Expected<LocalNet>& local = run.problem.local_chain();
  if (!local) return run.decline(local.reason());
  const LayeredNet* net = local->net.get();
  const NormDecomposition parts = *decomposition_of(run.query.norms, net->inputs(), net->outputs());
  const double left = run.seconds_left();
  const double seconds = root_seconds(*net, parts, true);
  if (seconds > share_of_time * left) {
    return run.decline(
        fmt::format("about {:.1f} s of the {:.0f} s left; see --time", seconds, left));
  }
  BoundedRegion region(*net, run.query.domain);
  if (!region.usable()) return run.decline("values that are not bounded on the domain");
  const ComponentNet component_net(*net, parts);
  std::vector<Solver> by_part;
  for (Index part = 0; part < parts.count; ++part)
    by_part.emplace_back(component_net.get(), parts.whole ? std::nullopt : std::optional(part));
  Solver whole(*net, std::nullopt);
  const auto stop = [&] { return run.should_stop(); };
  std::vector<Multipliers> narrowing;
  double best = kInf;
  for (int round = 0; round < kRounds && !stop(); ++round) {
    const Slopes slopes = region.confirm({}, {}).slopes;
    const Slopes along = component_net.slopes(slopes);
    CaseTree tree{.narrowing = narrowing};
    double upper = 0;
    Solver::Found found;
    for (Solver& part : by_part) {
      found = part.solve(along, stop);
      upper = std::max(upper, found.upper);
      tree.nodes.emplace_back();
      tree.nodes.back().multipliers = of_unstable_units(along, found.multipliers);
    }
    upper = claim_of_cases(upper);
    if (!(upper < best)) break;
    best = upper;
    run.report(
        {upper, Guarantee::kProved, "local-lipsdp"},
        {.proof = CaseProof{std::make_shared<const CaseTree>(std::move(tree)), local->unstable}});
    const std::size_t open = region.unstable_units();
    if (open == 0) break;
    if (!parts.whole) found = whole.solve(slopes, stop);
    narrowing.push_back(std::move(found.multipliers));
    // Functions without a kink may gain from ranges that leave as many units open.
    if (!region.narrow(narrowing.back()) ||
        (net->piecewise_linear() && region.unstable_units() == open))
      break;
  }
}

}  // namespace

std::vector<Method> method_local_lipsdp() {
  return {{.info = {.id = "local-lipsdp",
                    .side = "upper",
                    .summary = "semidefinite relaxation whose constants narrow its own ranges",
                    .theory = "local-11",
                    .guarantee = Guarantee::kProved},
           .unsupported = local_lipsdp_unsupported,
           .run = run_local_lipsdp}};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// lipsdp: upper bound from the semidefinite relaxation with one multiplier per neuron.
//
// Needs      functions of single entries with affine maps between them (dense layers, convolutions,
//            residual connections, pools, anything whose operator knows its matrix), l2 to l2 (a
//            scalar output has any norm), at most 60,000 neurons and 4 GB for the proof. A network
//            that has other nodes or is larger is cut into segments; gains lead through the rest.
// Gives      upper bound, proved: a Cholesky factorisation of the matrix inequality, all rounding
//            included. Never above the layer product of the same layers, up to the gap.
// Cost       some hundred products with the weights for 12 to 50 vectors and a few factorisations:
//            cubes of the layer sizes.
// Certifies  the multipliers and rho of each segment, and the gains between them.
// Theory     docs/theory/global.md [global-1] to [global-4].
#include <algorithm>
#include <cmath>

#include "estimate/composition.h"
#include "estimate/lipsdp_solver.h"
#include "estimate/method.h"
#include "estimate/segments.h"

namespace lipscope {
namespace {

// The gap to end with: a proof of a large network costs seconds.
double gap_for(double operations) {
  return operations > 2e9 ? 8e-4 : operations > 1e7 ? 2e-4 : 2e-5;
}

std::string lipsdp_unsupported(const Query& query) {
  return query.norms.in == Norm(2) ? "" : "supports only the l2 input norm";
}

// What is proved of each segment so far; the rest are gains.
class SegmentRun {
 public:
  explicit SegmentRun(const MethodRun& run) : run_(run), graph_(*run.query.graph) {}

  void run() {
    std::string reason;
    if (!run_.named && run_.has_answered("local-lipsdp")) {
      const Expected<LocalNet>& local = run_.problem.local_chain();
      if (local && local->unstable)
        return run_.decline("most units have one slope here: local-lipsdp is about the others");
    }
    // One factorisation on a usual machine: 3e10 operations per second.
    const SegmentLimits limits{kMostProofDoubles, 2e10 * seconds_left(),
                               [&] { return run_.should_stop() || seconds_left() < 0.7 * given_; }};
    const auto segments = sdp_segments(run_.problem, limits, reason);
    if (segments.empty()) return run_.decline(reason);
    proofs_.resize(segments.size());
    const bool whole = is_whole(segments[0]);
    if (whole && !about_euclid()) return run_.decline("supports only the l2 input norm");
    for (std::size_t s = 0; s < segments.size() && !run_.should_stop(); ++s) {
      const auto behind = static_cast<double>(segments.size() - 1 - s);
      solve(segments, s, seconds_left() * behind / (behind + 1));
    }
  }

 private:
  double seconds_left() const { return run_.seconds_left(); }
  bool is_whole(const SdpSegment& segment) const {
    return graph_.inputs().size() == 1 && segment.from == graph_.inputs()[0] &&
           segment.to == graph_.outputs()[0];
  }
  bool about_euclid() const {
    return run_.query.norms.out == Norm(2) ||
           element_count(graph_.value(graph_.outputs()[0]).type.shape) == 1;
  }

  // `reserved`: seconds left to the segments behind.
  void solve(const std::vector<SdpSegment>& segments, std::size_t s, double reserved) {
    const UnitNetwork& network = *segments[s].network;
    const double operations = proof_cost(network).operations;
    double seconds = operations / 3e10, best = HUGE_VAL;
    const auto too_late = [&] { return run_.interrupted() || seconds_left() < -0.02 * given_; };
    const auto stop = [&] { return run_.should_stop() || seconds > seconds_left() - reserved; };
    const auto prove = [&](const LipsdpGuess& guess) {
      if (!(guess.rho < best)) return true;
      const double before = seconds_left();
      const bool proved = proves(network, guess.multipliers, guess.rho, too_late, true);
      seconds = before - seconds_left();
      if (!proved) return false;
      best = guess.rho;
      proofs_[s] = ChainProof{.rho = best, .multipliers = guess.multipliers};
      report(segments, guess.dual > 0 ? std::sqrt(best / guess.dual) - 1 : 0);
      return true;
    };
    solve_lipsdp(network, gap_for(operations), *run_.context.clock, stop, prove);
  }

  void report(const std::vector<SdpSegment>& segments, double gap) {
    if (is_whole(segments[0])) {
      const double constant = constant_up(*segments[0].network, proofs_[0]->rho);
      return run_.report({constant, Guarantee::kProved, "lipsdp"},
                         {.proof = MultiplierProof{{*proofs_[0]}}, .gap = gap});
    }
    std::vector<KnownConstant> known;
    std::vector<ChainProof> chains;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      if (!proofs_[s]) continue;
      const SdpSegment& segment = segments[s];
      known.push_back({segment.from, segment.to, constant_up(*segment.network, proofs_[s]->rho)});
      chains.push_back(*proofs_[s]);
      const auto inputs = graph_.inputs();
      if (std::ranges::find(inputs, segment.from) == inputs.end())
        chains.back().from = graph_.value(segment.from).name;
      chains.back().to = graph_.value(segment.to).name;
    }
    Composition whole =
        compose_with(known, graph_, run_.query.norms,
                     operator_gains(graph_, run_.query.domain, run_.context.memory));
    run_.report({whole.upper, Guarantee::kProved, "lipsdp"},
                {.proof = MultiplierProof{std::move(chains), std::move(whole.gains)}});
  }

  const MethodRun& run_;
  const Graph& graph_;
  double given_ = seconds_left();
  std::vector<std::optional<ChainProof>> proofs_;
};

void run_lipsdp(const MethodRun& run) { SegmentRun(run).run(); }

}  // namespace

std::vector<Method> method_lipsdp() {
  return {{.info = {.id = "lipsdp",
                    .side = "upper",
                    .summary = "semidefinite relaxation, one multiplier per neuron",
                    .theory = "global-1",
                    .guarantee = Guarantee::kProved},
           .unsupported = lipsdp_unsupported,
           .run = run_lipsdp,
           .share = 0.5}};
}

}  // namespace lipscope

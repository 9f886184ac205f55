// SPDX-License-Identifier: Apache-2.0
#include "estimate/lipsdp_solver.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "estimate/lipsdp_dual.h"
#include "net/trim.h"

namespace lipscope {
namespace {

// Multipliers of the dual made feasible: those of a node, and rho for the input, are raised by
// (1 + e)^2 for each step they are away from the output [global-4].
LipsdpGuess widened_guess(const UnitNetwork& network, const LipsdpDual& dual, double e) {
  const int depth = network.nodes.back().depth;
  const auto raise = [&](std::size_t k) {
    return std::pow(1 + e, 2.0 * (depth - network.nodes[k].depth));
  };
  LipsdpGuess guess{dual.multipliers(), dual.value() * raise(0), dual.value()};
  for (std::size_t k = 0; k < guess.multipliers.size(); ++k) {
    std::vector<double>& layer = guess.multipliers[k];
    // Entries the iteration says nothing about get what is usual in their node.
    std::vector<double> known;
    for (const double t : layer) {
      if (t > 0) known.push_back(t);
    }
    double usual = 1;
    if (!known.empty()) {
      std::ranges::nth_element(known, known.begin() + std::ssize(known) / 2);
      usual = known[known.size() / 2];
    }
    for (double& t : layer) t = (t > 0 ? t : usual) * raise(k + 1);
  }
  return guess;
}

class Solver {
 public:
  Solver(const UnitNetwork& network, double gap, const RunClock& clock,
         const std::function<bool()>& stop, const std::function<bool(const LipsdpGuess&)>& prove)
      : net_(network),
        gap_(gap),
        clock_(clock),
        stop_(stop),
        prove_(prove),
        dual_(network, first_rank()) {}

  void run() {
    constexpr int kMostSteps = 20000;
    // Where a proof costs more than many steps, the first one waits until it can be the last.
    const bool dear = proof_cost(net_).operations > 2e9;
    // A failed one costs as much, so it is tried with some slack.
    const double slack = dear ? 1.35 : 1;
    const double first_patience = dear ? gap_ * gap_ / (slack * slack) : 1e-4;
    double patience = first_patience, last_value = 0;
    for (int steps = 0; steps < kMostSteps && !stop_(); ++steps) {
      if (reached_ <= goal()) return;
      const double value = dual_.step();
      const double progress = (value - last_value) / value;
      last_value = value;
      if (++since_proof_ < 15 || !(progress < patience) || !worth_a_proof()) continue;
      const double before = reached_;
      attempt(dear, slack * std::sqrt(std::max(progress, 0.0)));
      if (reached_ <= goal()) return;
      const bool stuck = !(reached_ < 0.8 * before);
      if (progress < 1e-6 || stuck) dual_.be_precise();
      failures_ = reached_ < before ? 0 : failures_ + 1;
      // Too small a rank settles on a value that no multipliers reach.
      if ((progress < 1e-9 && stuck) || (dear && failures_ >= 2)) {
        failures_ = 0;
        if (dual_.rank() >= most_rank()) return;
        dual_.grow(std::min(most_rank(), dual_.rank() + dual_.rank() / 2));
        last_value = 0;
        patience = first_patience;
        continue;
      }
      patience = std::max(patience * (dear ? 0.3 : 0.09), 1e-11);
    }
    if (!(reached_ < HUGE_VAL)) attempt(false, 0);
  }

 private:
  Index most_rank() const {
    return static_cast<Index>(std::ceil(std::sqrt(2.0 * (static_cast<double>(net_.size()) + 1))));
  }
  Index first_rank() const {
    const Index n = net_.size();
    return std::min<Index>(n < 3000 ? 12 : n < 10000 ? 20 : n < 20000 ? 28 : 40, most_rank());
  }
  // The last digit of a large network is worth less than what other methods do in that time.
  double goal() const {
    constexpr double kSeconds = 2, kEnough = 9e-4;
    return clock_.now() - start_ < kSeconds ? gap_ : std::max(gap_, kEnough);
  }
  double width_for(double gap) const { return gap / net_.nodes.back().depth; }

  bool worth_a_proof() const { return clock_.now() - last_proof_ >= 0.5 * proof_seconds_; }

  // sqrt(rho / dual) - 1 when it was proved.
  double tried(double e) {
    const double start = clock_.now();
    const LipsdpGuess guess = widened_guess(net_, dual_, e);
    const bool proved = prove_(guess);
    proof_seconds_ = clock_.now() - start;
    return proved ? std::sqrt(guess.rho / guess.dual) - 1 : HUGE_VAL;
  }

  // The smallest of some widths that proves more than is known. Where a proof is dear, only the
  // first, and one more as long as nothing was proved.
  // `likely` is the gap to begin with: about the root of the progress per step, as seen in tests.
  void attempt(bool dear, double likely) {
    int left = !dear ? 100 : reached_ < HUGE_VAL ? 1 : 2;
    for (double e = width_for(std::max(0.6 * goal(), likely)); e < 3 && left-- > 0 && !stop_();
         e *= 4) {
      if (!(std::pow(1 + e, net_.nodes.back().depth) - 1 < reached_)) break;
      const double gap = tried(e);
      reached_ = std::min(reached_, gap);
      if (gap < HUGE_VAL) break;
    }
    last_proof_ = clock_.now();
    since_proof_ = 0;
  }

  const UnitNetwork& net_;
  double gap_;
  const RunClock& clock_;
  const std::function<bool()>& stop_;
  const std::function<bool(const LipsdpGuess&)>& prove_;
  LipsdpDual dual_;
  double reached_ = HUGE_VAL, proof_seconds_ = 0;
  double start_ = clock_.now(), last_proof_ = start_;
  int since_proof_ = 0, failures_ = 0;
};

// Parts that do not touch: the iteration would forget all but the strongest. Each is solved for
// itself; the matrix of the whole has theirs for blocks, all with the largest rho.
void solve_parts(const UnitNetwork& network, const std::vector<EntryFlags>& parts, double gap,
                 const RunClock& clock, const std::function<bool()>& stop,
                 const std::function<bool(const LipsdpGuess&)>& prove) {
  LipsdpGuess whole;
  for (std::size_t k = 1; k + 1 < network.nodes.size(); ++k)
    whole.multipliers.emplace_back(static_cast<std::size_t>(network.nodes[k].size), 1.0);
  for (const EntryFlags& part : parts) {
    const UnitNetwork net = restricted(network, part);
    LipsdpGuess best{{}, HUGE_VAL, 0};
    const auto keep = [&](const LipsdpGuess& guess) {
      if (!proves(net, guess.multipliers, guess.rho, stop, true)) return false;
      if (guess.rho < best.rho) best = guess;
      return true;
    };
    Solver(net, gap, clock, stop, keep).run();
    if (!(best.rho < HUGE_VAL)) return;
    whole.rho = std::max(whole.rho, best.rho);
    whole.dual = std::max(whole.dual, best.dual);
    for (std::size_t k = 1, own = 0; k + 1 < network.nodes.size(); ++k) {
      if (std::ranges::find(part[k], true) == part[k].end()) continue;
      auto from = best.multipliers[own++].begin();
      for (std::size_t i = 0; i < part[k].size(); ++i) {
        if (part[k][i]) whole.multipliers[k - 1][i] = *from++;
      }
    }
  }
  // More entries, more rounding.
  for (const double raise : {1.0, 1 + 1e-7, 1 + 1e-5}) {
    whole.rho *= raise;
    if (prove(whole)) return;
  }
}

}  // namespace

void solve_lipsdp_of_each(const UnitNetwork& network, double gap, const std::function<bool()>& stop,
                          const std::function<bool(const Multipliers&)>& prove) {
  constexpr int kLeastSteps = 15, kMostSteps = 5000;
  constexpr Index kMoreColumns = 12;
  LipsdpDual dual(network, network.nodes.back().size + kMoreColumns, DualAim::kTrace);
  double value = 0, progress = 1;
  for (int steps = 0; steps < kMostSteps && !stop(); ++steps) {
    if (steps >= kLeastSteps && !(progress >= gap * gap)) break;
    const double before = std::exchange(value, dual.step());
    progress = (value - before) / value;
  }
  for (double e = gap / network.nodes.back().depth; e < 3 && !stop(); e *= 4) {
    LipsdpGuess guess = widened_guess(network, dual, e);
    for (std::vector<double>& layer : guess.multipliers) {
      for (double& t : layer) t /= guess.rho;
    }
    if (prove(guess.multipliers)) return;
  }
}

void solve_lipsdp(const UnitNetwork& network, double gap, const RunClock& clock,
                  const std::function<bool()>& stop,
                  const std::function<bool(const LipsdpGuess&)>& prove) {
  if (network.nodes.empty()) {
    prove({});
    return;
  }
  const std::vector<EntryFlags> parts = components(network);
  constexpr std::size_t kMostParts = 200;
  if (parts.size() == 1 || parts.size() > kMostParts)
    return Solver(network, gap, clock, stop, prove).run();
  solve_parts(network, parts, gap, clock, stop, prove);
}

}  // namespace lipscope

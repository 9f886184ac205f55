// SPDX-License-Identifier: Apache-2.0
// lipsdp: upper bound from the semidefinite relaxation with one multiplier per neuron.
//
// Needs      functions of single entries with affine maps between them (dense layers, convolutions,
//            residual connections, pools, anything whose operator knows its matrix), l2 to l2 (a
//            scalar output has any norm), at most 60,000 neurons and 4 GB for the proof.
// Gives      upper bound, proved: a Cholesky factorisation of the matrix inequality, all rounding
//            included. Never above the layer product of the same layers, up to the gap.
// Cost       some hundred products with the weights for 12 to 50 vectors and a few factorisations:
//            cubes of the layer sizes.
// Certifies  the multipliers and rho.
// Theory     docs/theory/global.md [global-1] to [global-4].
#include <fmt/format.h>

#include <cmath>

#include "bounds/boxes.h"
#include "estimate/lipsdp_solver.h"
#include "estimate/method.h"

namespace lipscope {
namespace {

constexpr Index kMost = 60'000;
constexpr double kMostDoubles = 5e8;

// The gap to end with: a proof of a large network costs seconds.
double gap_for(double operations) {
  return operations > 2e9 ? 8e-4 : operations > 1e7 ? 2e-4 : 2e-5;
}

std::optional<SdpNetwork> network_of(const Query& query, std::string& reason) {
  ValueBoxes boxes(*query.graph, input_boxes(*query.graph, query.domain));
  auto network = as_sdp_network(
      *query.graph, [&](ValueId id) -> const Box& { return boxes.at(id); }, kMost, reason);
  if (network && proof_cost(*network).doubles > kMostDoubles) {
    reason = "layers too large to factor";
    return std::nullopt;
  }
  return network;
}

std::string unsupported(const Query& query) {
  const Index outputs = element_count(query.graph->value(query.graph->outputs()[0]).type.shape);
  if (query.norms.in != Norm(2) || (query.norms.out != Norm(2) && outputs != 1))
    return "it is about l2";
  return {};
}

void run(const MethodRun& run) {
  std::string reason;
  const auto network = network_of(run.query, reason);
  if (!network) return run.decline(reason);
  // One factorisation on a usual machine.
  const double operations = proof_cost(*network).operations;
  double seconds = operations / 3e10;
  const auto seconds_left = [&] {
    return std::chrono::duration<double>(run.deadline - std::chrono::steady_clock::now()).count();
  };
  if (1.5 * seconds > seconds_left()) {
    return run.decline(fmt::format("it would take about {:.0f} s of the {:.0f} s left; see --time",
                                   2 * seconds, seconds_left()));
  }
  double best = HUGE_VAL;
  const auto stop = [&] { return run.should_stop() || seconds > seconds_left(); };
  const auto prove = [&](const LipsdpGuess& guess) {
    if (!(guess.rho < best)) return true;
    const double before = seconds_left();
    const bool proved = proves(
        *network, guess.multipliers, guess.rho, [&] { return run.context.stop.stop_requested(); },
        true);
    seconds = before - seconds_left();
    if (!proved) return false;
    best = guess.rho;
    run.report({constant_up(*network, best), Guarantee::kProved, "lipsdp"},
               {.chain = ChainProof{best, guess.multipliers},
                .gap = guess.dual > 0 ? std::sqrt(best / guess.dual) - 1 : 0});
    return true;
  };
  solve_lipsdp(*network, gap_for(operations), stop, prove);
}

}  // namespace

std::vector<Method> method_lipsdp() {
  return {{.info = {.id = "lipsdp",
                    .side = "upper",
                    .summary = "semidefinite relaxation, one multiplier per neuron",
                    .theory = "global-1",
                    .guarantee = Guarantee::kProved},
           .unsupported = unsupported,
           .run = run}};
}

}  // namespace lipscope

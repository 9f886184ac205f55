// SPDX-License-Identifier: Apache-2.0
// lipsdp: upper bound from the semidefinite relaxation with one multiplier per neuron.
//
// Needs      functions of single entries with affine maps between them (dense layers, convolutions,
//            residual connections, pools, anything whose operator knows its matrix), l2 to l2 (a
//            scalar output has any norm), at most 60,000 neurons and 4 GB for the proof. Before a
//            node of another kind it stops, and gains lead from there to the output.
// Gives      upper bound, proved: a Cholesky factorisation of the matrix inequality, all rounding
//            included. Never above the layer product of the same layers, up to the gap.
// Cost       some hundred products with the weights for 12 to 50 vectors and a few factorisations:
//            cubes of the layer sizes.
// Certifies  the multipliers and rho.
// Theory     docs/theory/global.md [global-1] to [global-4].
#include <fmt/format.h>

#include <cmath>

#include "bounds/boxes.h"
#include "estimate/composition.h"
#include "estimate/lipsdp_solver.h"
#include "estimate/method.h"

namespace lipscope {
namespace {

constexpr Index kMost = 60'000;  // as in certify/checker.cpp
constexpr double kMostProofDoubles = 5e8;

// The gap to end with: a proof of a large network costs seconds.
double gap_for(double operations) {
  return operations > 2e9 ? 8e-4 : operations > 1e7 ? 2e-4 : 2e-5;
}

// The network up to its output, or up to the last value before a node that does not fit.
struct Part {
  SdpNetwork network;
  std::optional<ValueId> at;
};

std::optional<Part> part_of(const Query& query, std::string& reason) {
  const Graph& graph = *query.graph;
  ValueBoxes boxes(graph, input_boxes(graph, query.domain));
  const auto box = [&](ValueId id) -> const Box& { return boxes.at(id); };
  Part part;
  auto network = as_sdp_network(graph, box, kMost, reason);
  if (!network) {
    part.at = sdp_prefix(graph, box, kMost);
    std::string other;
    if (part.at) network = as_sdp_network(graph, box, kMost, other, part.at);
  }
  if (!network) return std::nullopt;
  const Index outputs = element_count(graph.value(graph.outputs()[0]).type.shape);
  if (!part.at && query.norms.out != Norm(2) && outputs != 1) {
    reason = "it is about l2";
    return std::nullopt;
  }
  if (proof_cost(*network).doubles > kMostProofDoubles) {
    reason = "layers too large to factor";
    return std::nullopt;
  }
  part.network = *std::move(network);
  return part;
}

std::string lipsdp_unsupported(const Query& query) {
  return query.norms.in == Norm(2) ? "" : "it is about l2";
}

// The bound of the whole from one of the part, with the gains behind it.
void report(const MethodRun& run, const Part& part, ChainProof proof, double gap) {
  const double constant = constant_up(part.network, proof.rho);
  if (!part.at)
    return run.report({constant, Guarantee::kProved, "lipsdp"},
                      {.chain = std::move(proof), .gap = gap});
  const Graph& graph = *run.query.graph;
  proof.at = graph.value(*part.at).name;
  Composition whole = compose_from({*part.at, constant}, graph, run.query.norms,
                                   operator_gains(graph, run.query.domain, run.context.memory));
  run.report({whole.upper, Guarantee::kProved, "lipsdp"},
             {.gains = std::move(whole.gains), .chain = std::move(proof)});
}

void run_lipsdp(const MethodRun& run) {
  std::string reason;
  const auto part = part_of(run.query, reason);
  if (!part) return run.decline(reason);
  const SdpNetwork& network = part->network;
  // One factorisation on a usual machine.
  const double operations = proof_cost(network).operations;
  double seconds = operations / 3e10;
  const auto seconds_left = [&] {
    return std::chrono::duration<double>(run.deadline - std::chrono::steady_clock::now()).count();
  };
  if (1.5 * seconds > seconds_left()) {
    return run.decline(fmt::format("it would take about {:.0f} s of the {:.0f} s left; see --time",
                                   2 * seconds, seconds_left()));
  }
  double best = HUGE_VAL;
  const auto interrupted = [&] { return run.context.stop.stop_requested(); };
  const auto stop = [&] { return run.should_stop() || seconds > seconds_left(); };
  const auto prove = [&](const LipsdpGuess& guess) {
    if (!(guess.rho < best)) return true;
    const double before = seconds_left();
    const bool proved = proves(network, guess.multipliers, guess.rho, interrupted, true);
    seconds = before - seconds_left();
    if (!proved) return false;
    best = guess.rho;
    report(run, *part, {best, guess.multipliers},
           guess.dual > 0 ? std::sqrt(best / guess.dual) - 1 : 0);
    return true;
  };
  solve_lipsdp(network, gap_for(operations), stop, prove);
}

}  // namespace

std::vector<Method> method_lipsdp() {
  return {{.info = {.id = "lipsdp",
                    .side = "upper",
                    .summary = "semidefinite relaxation, one multiplier per neuron",
                    .theory = "global-1",
                    .guarantee = Guarantee::kProved},
           .unsupported = lipsdp_unsupported,
           .run = run_lipsdp}};
}

}  // namespace lipscope

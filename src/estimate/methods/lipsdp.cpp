// SPDX-License-Identifier: Apache-2.0
// lipsdp: upper bound from the semidefinite relaxation with one multiplier per neuron.
//
// Needs      a chain of dense layers or convolutions with functions of single entries between them,
//            l2 to l2 (a scalar output has any norm), at most 20,000 entries in all and 2 GB for
//            the proof.
// Gives      upper bound, proved: a Cholesky factorisation of the matrix inequality, all rounding
//            included. Never above the layer product of the same layers, up to the gap.
// Cost       some hundred products with the weights for 12 to 50 vectors, a few factorisations per
//            layer and one of the whole: cubes of the layer sizes.
// Certifies  the multipliers and rho.
// Theory     docs/theory/global.md [global-1] to [global-4].
#include <fmt/format.h>

#include <cmath>

#include "bounds/boxes.h"
#include "estimate/lipsdp_solver.h"
#include "estimate/method.h"

namespace lipscope {
namespace {

constexpr Index kMost = 20'000;
constexpr double kGap = 2e-4;

std::optional<Chain> chain_of(const Query& query, std::string& reason) {
  ValueBoxes boxes(*query.graph, input_boxes(*query.graph, query.domain));
  return as_chain(
      *query.graph, [&](ValueId id) -> const Box& { return boxes.at(id); }, kMost, reason);
}

std::string unsupported(const Query& query) {
  const Index outputs = element_count(query.graph->value(query.graph->outputs()[0]).type.shape);
  if (query.norms.in != Norm(2) || (query.norms.out != Norm(2) && outputs != 1))
    return "it is about l2";
  std::string reason;
  (void)chain_of(query, reason);
  return reason;
}

// Two rounds of factorisations on a usual machine.
double seconds_for(const Chain& chain) {
  double operations = 0;
  for (const ChainLayer& layer : chain.layers)
    operations += 20 * std::pow(static_cast<double>(layer.rows), 3);
  return operations / 4e10;
}

void run(const MethodRun& run) {
  std::string reason;
  const auto chain = chain_of(run.query, reason);
  if (!chain) return;
  const std::chrono::duration<double> left = run.deadline - std::chrono::steady_clock::now();
  if (seconds_for(*chain) > 0.6 * left.count()) {
    return run.decline(fmt::format("it would take about {:.0f} s of the {:.0f} s left; see --time",
                                   seconds_for(*chain), left.count()));
  }
  double best = HUGE_VAL;
  const auto prove = [&](const LipsdpResult& found) {
    for (const double slack : {1e-8, 1e-6, 1e-4, 1e-2}) {
      LipsdpResult raised = found.raised(slack);
      if (!(raised.rho < best)) return;
      if (!proves_chain(*chain, raised.multipliers, raised.rho)) continue;
      best = raised.rho;
      run.report({chain_constant_up(*chain, best), Guarantee::kProved, "lipsdp"},
                 {.chain = ChainProof{best, std::move(raised.multipliers)},
                  .gap = std::sqrt(best / found.dual) - 1});
      return;
    }
  };
  solve_lipsdp(
      *chain, kGap, [&] { return run.should_stop(); }, prove);
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

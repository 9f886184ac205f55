// SPDX-License-Identifier: Apache-2.0
// eclipse-fast: upper bound from the semidefinite relaxation with multipliers in closed form.
//
// Needs      what lipsdp needs: functions of single entries with affine maps between them, l2 to l2
//            (a scalar output has any norm); at most 4 GB and a fortieth of the time left.
// Gives      upper bound, proved: the factorisation of lipsdp with multipliers found layer by
//            layer. Chains: never above the product of the layers' norms and slopes, up to 1e-5;
//            usually 1.3 to 2 times what lipsdp finds, more in deep networks.
// Cost       one pass with an inverse per layer and one factorisation: cubes of the layer sizes.
//            A first answer when the factorisation takes at most 1e9 operations.
// Certifies  the multipliers and rho.
// Theory     docs/theory/global.md [global-5].
#include <fmt/format.h>

#include "estimate/eclipse_recursion.h"
#include "estimate/method.h"
#include "estimate/sdp_query.h"
#include "net/problem.h"
#include "sdp/lmi.h"

namespace lipscope {
namespace {

constexpr double kFirst = 1e9;       // operations of a proof
constexpr double kOperations = 5e9;  // of the proof, per second of pass and proof together
constexpr double kShareOfTime = 0.025;

std::string why_too_large(const MethodRun& run, const BlockCost& cost) {
  if (cost.doubles > kMostProofDoubles) return "layers too large to factor";
  const double seconds = cost.operations / kOperations;
  const double left = run.seconds_left();
  if (seconds <= kShareOfTime * left) return {};
  return fmt::format("no quick answer: about {:.1f} s of the {:.0f} s left; see --time", seconds,
                     left);
}

void answer(const MethodRun& run, const UnitNetwork& network) {
  const auto stop = [&] { return run.should_stop(); };
  const auto plain = eclipse_multipliers(network, stop);
  if (!plain) return run.decline("stopped, or numbers outside the range of doubles");
  const int depth = network.nodes.empty() ? 1 : network.nodes.back().depth;
  for (double gap = 1e-7; gap < 1 && !stop(); gap *= 100) {
    ChainProof proof = raised(network, *plain, gap / depth);
    if (!proves(network, proof.multipliers, proof.rho, stop, true)) continue;
    const double bound = constant_up(network, proof.rho);
    return run.report({bound, Guarantee::kProved, "eclipse-fast"},
                      {.proof = MultiplierProof{{std::move(proof)}}});
  }
  run.decline(stop() ? "stopped" : "the factorisation failed");
}

void run_eclipse_fast_first(const MethodRun& run) {
  if (!is_small(*run.query.graph)) return;
  const Expected<UnitNetwork>& network = run.problem.units();
  if (network && proof_cost(*network).operations <= kFirst) answer(run, *network);
}

void run_eclipse_fast(const MethodRun& run) {
  const Expected<UnitNetwork>& network = run.problem.units();
  if (!network) return run.decline(network.reason());
  const BlockCost cost = proof_cost(*network);
  if (cost.operations <= kFirst && is_small(*run.query.graph))
    return;  // run_eclipse_fast_first has answered
  if (const std::string reason = why_too_large(run, cost); !reason.empty())
    return run.decline(reason);
  answer(run, *network);
}

}  // namespace

std::vector<Method> method_eclipse_fast() {
  return {{.info = {.id = "eclipse-fast",
                    .side = "upper",
                    .summary = "semidefinite relaxation, multipliers in closed form",
                    .theory = "global-5",
                    .guarantee = Guarantee::kProved},
           .unsupported = why_not_euclidean,
           .run = run_eclipse_fast,
           .run_first = run_eclipse_fast_first}};
}

}  // namespace lipscope

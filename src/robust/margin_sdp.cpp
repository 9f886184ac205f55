// SPDX-License-Identifier: Apache-2.0
#include "robust/margin_sdp.h"

#include <algorithm>

#include "base/rounding.h"
#include "bounds/boxes.h"
#include "estimate/lipsdp_solver.h"
#include "robust/last_layer.h"
#include "sdp/reduce.h"

namespace lipscope {

std::optional<MarginSdp> MarginSdp::read(const Graph& graph) {
  constexpr double kMostDoubles = 3e8, kMostOperations = 3e11;
  ValueBoxes boxes(graph, input_boxes(graph, {}));
  std::string reason;
  auto network = read_sdp_network(
      graph, [&](ValueId id) -> const Box& { return boxes.at(id); }, kMostSdpEntries, reason);
  if (!network) return std::nullopt;
  MarginSdp result;
  result.network_ = std::move(*network);
  const BlockCost cost = proof_cost(result.network_);
  if (cost.doubles > kMostDoubles || cost.operations > kMostOperations) return std::nullopt;
  result.doubles_ = cost.doubles;
  result.operations_ = cost.operations;
  return result;
}

double MarginSdp::solve(SdpNetwork network, bool fine, const OwnBudget& budget) const {
  drop_dead_entries(network);
  if (network.nodes.empty()) return 0;
  scale_nodes(network);
  // A proof of a large network costs more than many steps.
  const double coarse = operations_ > 1e9 ? 3e-3 : operations_ > 1e7 ? 1e-3 : 2e-4;
  double best = kInf;
  const auto stop = [&] { return budget.over(); };
  solve_lipsdp(network, fine ? 0.2 * coarse : coarse, budget.clock(), stop,
               [&](const LipsdpGuess& guess) {
                 if (!(guess.rho < best)) return true;
                 if (!proves(network, guess.multipliers, guess.rho, stop, true)) return false;
                 best = guess.rho;
                 return true;
               });
  return best < kInf ? constant_up(network, best) : kInf;
}

double MarginSdp::margin(Index i, Index j, bool fine, const OwnBudget& budget) const {
  SdpNetwork network = network_;
  SdpNode& last = network.nodes.back();
  last.size = 1;
  for (SdpNode::Edge& edge : last.edges) edge.map = row_difference(edge.map, i, j);
  return solve(std::move(network), fine, budget);
}

double MarginSdp::logits(const OwnBudget& budget) const { return solve(network_, false, budget); }

}  // namespace lipscope

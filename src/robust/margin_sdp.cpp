// SPDX-License-Identifier: Apache-2.0
#include "robust/margin_sdp.h"

#include <algorithm>

#include "base/rounding.h"
#include "estimate/lipsdp_solver.h"
#include "net/trim.h"
#include "robust/last_layer.h"

namespace lipscope {

std::optional<MarginSdp> MarginSdp::read(Problem& problem) {
  constexpr double kMostDoubles = 3e8, kMostOperations = 3e11;
  if (!problem.network()) return std::nullopt;
  MarginSdp result(
      std::shared_ptr<const UnitNetwork>(std::shared_ptr<void>(), &*problem.network()));
  if (result.doubles_ > kMostDoubles || result.operations_ > kMostOperations) return std::nullopt;
  return result;
}

MarginSdp::MarginSdp(std::shared_ptr<const UnitNetwork> network) : network_(std::move(network)) {
  const BlockCost cost = proof_cost(*network_);
  doubles_ = cost.doubles;
  operations_ = cost.operations;
}

double MarginSdp::solve(UnitNetwork network, bool fine, const OwnBudget& budget) const {
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
  if (network_->nodes.size() == 2)
    return difference_norm_up(network_->nodes[1].edges[0].map, i, j, Norm(2));
  UnitNetwork network = *network_;
  UnitNode& last = network.nodes.back();
  last.size = 1;
  for (UnitNode::Edge& edge : last.edges) edge.map = row_difference(edge.map, i, j);
  return solve(std::move(network), fine, budget);
}

double MarginSdp::logits(const OwnBudget& budget) const { return solve(*network_, false, budget); }

}  // namespace lipscope

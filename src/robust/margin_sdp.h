// SPDX-License-Identifier: Apache-2.0
// The semidefinite bound of margins between classes: the network is read once for all of them.
#pragma once

#include <optional>

#include "lipscope/bound.h"
#include "robust/own_budget.h"
#include "sdp/network.h"

namespace lipscope {

class MarginSdp {
 public:
  // Nothing for a graph of another form, or one whose proof is too large. Borrows the graph.
  [[nodiscard]] static std::optional<MarginSdp> read(const Graph& graph);

  // Multiplications of a proof, and numbers it holds.
  [[nodiscard]] double operations() const { return operations_; }
  [[nodiscard]] double doubles() const { return doubles_; }

  // Of f_i - f_j in l2. Infinity where the budget does not suffice. `fine`: up to the last digits
  // that are worth it.
  [[nodiscard]] double margin(Index i, Index j, bool fine, const OwnBudget& budget) const;
  // Of all logits together, l2 to l2.
  [[nodiscard]] double logits(const OwnBudget& budget) const;

 private:
  [[nodiscard]] double solve(SdpNetwork network, bool fine, const OwnBudget& budget) const;

  SdpNetwork network_;
  double operations_ = 0, doubles_ = 0;
};

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// The semidefinite bound of margins between classes: the network is read once for all of them.
#pragma once

#include <memory>
#include <optional>

#include "lipscope/bound.h"
#include "net/problem.h"
#include "robust/own_budget.h"

namespace lipscope {

class MarginSdp {
 public:
  // Nothing for a graph of another form, or one whose proof is too large. Borrows the network of
  // the problem, which is about the whole space.
  [[nodiscard]] static std::optional<MarginSdp> read(Problem& problem);

  // Of a network with nothing left out or scaled.
  explicit MarginSdp(std::shared_ptr<const UnitNetwork> network);

  // Multiplications of a proof, and numbers it holds.
  [[nodiscard]] double operations() const { return operations_; }
  [[nodiscard]] double doubles() const { return doubles_; }

  // Of f_i - f_j in l2. Infinity where the budget does not suffice. `fine`: up to the last digits
  // that are worth it.
  [[nodiscard]] double margin(Index i, Index j, bool fine, const OwnBudget& budget) const;
  // Of all logits together, l2 to l2.
  [[nodiscard]] double logits(const OwnBudget& budget) const;

  [[nodiscard]] const UnitNetwork& network() const { return *network_; }

 private:
  [[nodiscard]] double solve(UnitNetwork network, bool fine, const OwnBudget& budget) const;

  std::shared_ptr<const UnitNetwork> network_;
  double operations_ = 0, doubles_ = 0;
};

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Norms of a whole Jacobian from l-infinity, to l1 or both, by the l2 norm of the network with
// weighted inputs and outputs [pieces-12].
#pragma once

#include "pieces/scaled_net.h"
#include "search/jacobian_bounder.h"

namespace lipscope {

class WeightedWhole : public JacobianBounder {
 public:
  // Borrows the network. At least one of the two: inputs are measured by l-infinity, outputs by l1;
  // else by l2.
  WeightedWhole(const LayeredNet& net, bool inputs, bool outputs)
      : net_(net), inputs_(inputs), outputs_(outputs) {}

  double upper_bound(const Slopes& slopes, Index row, double good_enough,
                     std::vector<float>& state) override;
  double weight(UnitId unit) const override { return inner_->weight(unit); }
  const Multipliers& multipliers() const override { return inner_->multipliers(); }
  // Those of the inputs, then those of the outputs.
  std::vector<double> input_weights(Index) const override { return factors_; }
  bool use_input_weights(Index row, const std::vector<double>& weights) override;

 private:
  void choose_factors(const Slopes& slopes);

  const LayeredNet& net_;
  bool inputs_, outputs_;
  std::vector<double> factors_;
  std::unique_ptr<ScaledNet> scaled_;
  std::unique_ptr<JacobianBounder> inner_;
};

// Of a matrix from l-infinity or l2 to l1 or l2: what a few steps of ascent find, in plain
// arithmetic.
[[nodiscard]] double ascended_norm(const std::vector<double>& rows, Index count, double p,
                                   double q);

}  // namespace lipscope

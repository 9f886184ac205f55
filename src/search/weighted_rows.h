// SPDX-License-Identifier: Apache-2.0
// The sum of the absolute entries of a gradient, by linear bounds and by a weighted l2 norm
// [pieces-7]: the first are exact once all slopes are known, the second keeps how units hang
// together while many are not.
#pragma once

#include <map>

#include "pieces/scaled_net.h"
#include "search/jacobian_bounder.h"

namespace lipscope {

class WeightedRows : public JacobianBounder {
 public:
  // Borrows the network.
  explicit WeightedRows(const LayeredNet& net) : net_(net), linear_(net, GradientNorm::kOne) {}

  double upper_bound(const Slopes& slopes, Index row, double good_enough,
                     std::vector<float>& state) override;
  double weight(UnitId unit) const override;
  const Multipliers& multipliers() const override { return used_; }
  std::vector<double> input_weights(Index row) const override;
  bool use_input_weights(Index row, const std::vector<double>& weights) override;

 private:
  // The network with its inputs multiplied by factors.
  struct Scaled : ScaledNet {
    std::vector<double> factors;
    std::unique_ptr<EuclideanBound> bound;
    std::unique_ptr<MultiplierSearch> search;
  };
  // Null for factors that are none.
  [[nodiscard]] std::unique_ptr<Scaled> scale(Index row, std::vector<double> factors) const;
  // Factors for a set of slopes, from plain arithmetic.
  void choose_factors(Index row, const Slopes& slopes);
  double euclidean_upper_bound(Scaled& scaled, const Slopes& slopes, double good_enough);

  const LayeredNet& net_;
  RowBound linear_;
  std::map<Index, std::unique_ptr<Scaled>> scaled_;
  Scaled* last_ = nullptr;
  bool by_linear_ = true;
  bool given_ = false;  // the factors are not to be chosen here
  Multipliers used_, trial_;
};

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// The semidefinite bound of a chain by a recursion over its layers that takes units of known slope
// as they are [pieces-2].
#pragma once

#include <optional>
#include <vector>

#include "net/layered_net.h"

namespace lipscope {

// One positive number per unit, by layer; any are valid, some give no bound. 0 stands for one that
// always does. Those of units with a single slope are not used.
using Multipliers = std::vector<std::vector<double>>;

class EuclideanBound {
 public:
  // Of the gradient of one output, or of the whole Jacobian. Borrows the network.
  EuclideanBound(const LayeredNet& net, std::optional<Index> row);

  // Upper bound of |J|_2 for every J whose slopes lie in the intervals, all rounding included; +inf
  // where the multipliers prove nothing. Not for two threads at once.
  [[nodiscard]] double upper_bound(const Slopes& slopes, const Multipliers& multipliers);
  // The same for the values before each unit, by layer, whatever the row.
  [[nodiscard]] std::vector<std::vector<double>> before_units(const Slopes& slopes,
                                                              const Multipliers& multipliers);

 private:
  using Matrix = std::vector<double>;  // symmetric, all entries

  // cov: from values before the units to those behind them; false when nothing follows.
  bool through_units(const std::vector<Interval>& slopes, const std::vector<double>& multipliers);
  bool invert_slack(std::vector<double> multipliers);
  // cov := W cov W' for the rows [first, first + rows) of the layer.
  void through_weights(const DenseLayer& layer, Index first, Index rows);
  static void outweigh_errors(Matrix& matrix, std::vector<double>& size,
                              const std::vector<double>& rough, double rounding);
  [[nodiscard]] double top_eigenvalue_up(Index n) const;

  const LayeredNet& net_;
  std::optional<Index> row_;
  Matrix start_;  // W W' of the first layer
  // All below: scratch. cov_ is an upper bound, in the order of symmetric matrices, of v v' for the
  // changes v that a change of the input of length 1 can cause.
  Matrix cov_, product_, next_, factor_, inverse_, turned_, square_;
  std::vector<std::size_t> open_;               // units without a single slope
  std::vector<double> scale_, slack_, raised_;  // of these
  double inverse_norm_ = 0, growth_ = 1;
};

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// The dual of the semidefinite bound in low rank: every entry of the network carries a vector of
// `rank` numbers instead of one, and each activation may turn it inside a ball [global-3].
#pragma once

#include <random>
#include <vector>

#include "net/unit_network.h"

namespace lipscope {

// What is made large for |X_0| = 1: |Y|^2, the dual of the constant of all outputs, or the square
// of the trace of the first columns of Y, that of the sum of the squared constants of each
// [global-8].
enum class DualAim { kNorm, kTrace };

class LipsdpDual {
 public:
  // For the trace the rank is at least the number of outputs.
  LipsdpDual(const UnitNetwork& network, Index rank, DualAim aim = DualAim::kNorm);

  // One accelerated step of the power iteration; returns the value.
  double step();
  void grow(Index rank);  // appends small random columns
  // From now on dense maps are applied in double precision. Large networks begin in single.
  void be_precise() { rough_.clear(); }
  [[nodiscard]] bool precise() const { return rough_.empty(); }
  [[nodiscard]] Index rank() const { return rank_; }
  [[nodiscard]] double value() const { return value_; }
  // |G_i| / (2 r_i |v_i|) for each node with slopes [global-4]; 0 where it is not determined. Parts
  // of the network that the iteration forgets keep what they had when they were last seen.
  [[nodiscard]] std::vector<std::vector<double>> multipliers() const { return multipliers_; }

 private:
  using Block = std::vector<double>;  // rows x rank
  void make_rough();
  void forward();
  void backward();
  [[nodiscard]] double trace() const;
  void extrapolate(double momentum);
  void remember_multipliers();
  void normalise(Block& block, bool as_whole) const;
  void clear(Block& block, std::size_t node) const;
  // to += A from or A' from.
  void apply(std::size_t node, std::size_t edge, const Block& from, Block& to, bool adjoint);

  const UnitNetwork& net_;
  DualAim aim_;
  std::vector<std::vector<RowMatrix>> back_;  // transposed maps of each node that are not dense
  std::vector<std::vector<std::vector<float>>> rough_;  // dense maps, by node and edge
  Index rank_;
  std::vector<std::vector<double>> middle_, radius_;
  std::vector<Block> turn_, last_turn_;       // unit rows U_k; of the input X_0 itself
  std::vector<Block> before_, after_, pull_;  // V_k, X_k, G_k
  Block pulled_;                              // G_k behind the functions of node k
  std::vector<float> rough_from_, rough_to_;  // operands in single precision
  std::vector<std::vector<double>> multipliers_;
  double value_ = 0;
  int since_restart_ = 0;
  std::mt19937_64 rng_{7};
};

}  // namespace lipscope

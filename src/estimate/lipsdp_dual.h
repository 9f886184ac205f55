// SPDX-License-Identifier: Apache-2.0
// The dual of the semidefinite bound in low rank: every entry of the network carries a vector of
// `rank` numbers instead of one, and each activation may turn it inside a ball [global-3].
#pragma once

#include <random>
#include <vector>

#include "sdp/chain.h"

namespace lipscope {

class LipsdpDual {
 public:
  LipsdpDual(const Chain& chain, Index rank);

  // One accelerated step of the power iteration; returns the value |W_L X_L|^2 for |X_0| = 1.
  double step();
  void grow(Index rank);  // appends small random columns
  [[nodiscard]] Index rank() const { return rank_; }
  [[nodiscard]] double value() const { return value_; }
  // S_i = value |v_i| / (radius_i |G_i|) for each activation; 0 where it is not determined.
  [[nodiscard]] std::vector<std::vector<double>> scales() const;

 private:
  using Block = std::vector<double>;  // rows x rank
  void forward();
  void backward();
  void extrapolate(double momentum);
  void normalise(Block& block, bool as_whole) const;

  const Chain& chain_;
  Index rank_;
  std::vector<std::vector<double>> middle_, radius_;
  Block input_, last_input_;
  std::vector<Block> turn_, last_turn_;       // unit rows U_k
  std::vector<Block> before_, after_, pull_;  // V_k, X_k, G_k
  Block output_;
  double value_ = 0;
  int since_restart_ = 0;
  std::mt19937_64 rng_{7};
};

}  // namespace lipscope

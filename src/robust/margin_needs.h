// SPDX-License-Identifier: Apache-2.0
// Which constants of margins limit what is said about samples.
#pragma once

#include <span>
#include <vector>

#include "base/interval.h"
#include "lipscope/robustness.h"

namespace lipscope {

// Logits of samples, one after another.
struct LogitTable {
  std::vector<Interval> entries;
  std::size_t samples = 0;  // whose logits are known; of the others they may be anything
};

// From the margins of samples that are classified right, and the radii that are asked for.
class MarginNeeds {
 public:
  MarginNeeds(const LogitTable& logits, std::span<const Index> labels,
              std::span<const double> radii, Index classes);

  // Per pair, in the order of PairConstants: for how many samples and radii a constant that is
  // smaller by no more than the factor `hope` decides, shared between the pairs that stand in the
  // way of one; and a little for the pair that limits a sample. `settled`: pairs whose constants
  // will not get smaller; what they stand in the way of is lost, and they count for nothing.
  [[nodiscard]] std::vector<double> weights(const PairConstants& constants, double hope,
                                            const std::vector<bool>& settled = {}) const;

 private:
  struct Sample {
    Index winner = 0;
    std::vector<double> margins;  // by rival; of the winner itself infinity
  };
  Index classes_;
  std::vector<double> radii_;
  std::vector<Sample> samples_;
};

// The place of a pair in PairConstants.
[[nodiscard]] std::size_t pair_place(Index classes, Index i, Index j);

}  // namespace lipscope

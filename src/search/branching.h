// SPDX-License-Identifier: Apache-2.0
// Which unit a search splits next: by its weight in the bound, by what its splits gave before, and
// by trying two of them where little is known [pieces-5].
#pragma once

#include <vector>

#include "net/layered_net.h"

namespace lipscope {

// Where a part could be split. Weight: how much of its bound is due to the unit's freedom.
struct Split {
  UnitId unit;
  double at = 0, weight = 0;
};

class Branching {
 public:
  explicit Branching(const LayeredNet& net);

  // Candidates, the largest weight first.
  static void keep_best(std::vector<Split>& splits);
  // Places of the one or two of them whose parts should be bounded; `splits` as kept before, not
  // empty. Counts how often it advises two.
  [[nodiscard]] std::vector<std::size_t> advise(const std::vector<Split>& splits);
  // How much smaller the bounds below and above the split were, relative to that of the whole.
  void learn(UnitId unit, double below, double above);
  // Large where both are: one deep fall says nothing about the other side.
  [[nodiscard]] static double score(double below, double above);

 private:
  struct Gains {
    double below = 0, above = 0;  // sums
    int count = 0;
  };
  [[nodiscard]] const Gains& of(UnitId unit) const { return gains_[unit.layer][unit.place]; }

  std::vector<std::vector<Gains>> gains_;
  std::size_t asked_ = 0, tried_ = 0;
};

}  // namespace lipscope

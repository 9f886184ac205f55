// SPDX-License-Identifier: Apache-2.0
// Ranges that entries of values have in single ones of several functions that are bounded side by
// side [local-16]; for the files linear_*.cpp alone.
#pragma once

#include <cstddef>
#include <vector>

#include "base/interval.h"

namespace lipscope {

// Of a function of a single entry, on a range of that entry.
struct EntryLines {
  struct Line {
    double slope = 0, offset = 0;
    double loss = 0;  // of computing with the slope, per unit of a weight
  };
  Line below, above;
  Line other_below, other_above;  // hold as well
  double share_loss = 0;          // of cutting a weight in two
};

struct RowCuts {
  static constexpr double kLargest = 0x1p100;  // multipliers above it are not used
  // In function `row` these lines stand for those of the node.
  struct Lines {
    std::size_t entry = 0, row = 0;
    const EntryLines* lines = nullptr;
  };
  // In function `row` the entry is in the range. A multiplier above 0 is that of the lower end, one
  // below 0 that of the upper end.
  struct Limit {
    std::size_t entry = 0, row = 0;
    Interval range;
    double multiplier = 0;
    double first = 0, second = 0;  // moments of its gradients
  };
  std::vector<std::vector<Lines>> lines;   // by node, in the order of entries
  std::vector<std::vector<Limit>> limits;  // by value
};

}  // namespace lipscope

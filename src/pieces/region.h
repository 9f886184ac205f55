// SPDX-License-Identifier: Apache-2.0
// Where a proof by cases takes place: what splits leave of the domain, and which slopes occur
// there.
#pragma once

#include <vector>

#include "net/layered_net.h"

namespace lipscope {

// One side of a split: the value before the unit is at most, or at least, `at`.
struct Side {
  UnitId unit;
  double at = 0;
  bool above = false;
};
using Path = std::vector<Side>;

class Region {
 public:
  virtual ~Region() = default;
  struct View {
    bool empty = false;  // proved to have no inner point
    Slopes slopes;       // all that occur
  };
  // From the path and a proof of emptiness, which may be none.
  [[nodiscard]] virtual View confirm(const Path& path,
                                     const CaseTree::InfeasibilityProof& proof) = 0;
};

}  // namespace lipscope

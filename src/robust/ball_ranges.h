// SPDX-License-Identifier: Apache-2.0
// Ranges of values on balls, narrower than those of the box around the ball [robustness-9].
#pragma once

#include <vector>

#include "bounds/boxes.h"
#include "lipscope/norm.h"

namespace lipscope {

// What a network does to balls of one norm, from gains of its nodes that hold everywhere. Borrows
// the graph. May be used from several threads.
class BallRanges {
 public:
  BallRanges(const Graph& graph, const Norm& norm);

  // Finds the boxes of all values and narrows them to what inputs within `radius` of the center can
  // give. `ball`: boxes for the box around that ball; `center`: for its center alone.
  void narrow(ValueBoxes& ball, ValueBoxes& center, double radius) const;

 private:
  struct Gains {
    std::size_t input = 0;        // which one, of a node
    double whole = 0, entry = 0;  // from the norm to itself, and to the largest entry
  };
  const Graph& graph_;
  bool useful_ = false;
  std::vector<std::vector<Gains>> gains_;  // by node; of its inputs that vary
};

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// The question: the constant of a graph, in two norms, on a domain.
#pragma once

#include <optional>

#include "lipscope/graph.h"
#include "lipscope/norm.h"

namespace lipscope {

struct Ball {
  Tensor center;  // all inputs of the graph, flattened one after another
  double radius = 0;
  Norm norm = Norm(2);
};

// Where the input may be: neither means everywhere, both mean their intersection. Boxes, too, hold
// all inputs flattened one after another.
struct Domain {
  std::optional<Box> box;
  std::optional<Ball> ball;
  [[nodiscard]] bool everywhere() const { return !box && !ball; }
};

// The norm is over all floating inputs together; the output is the first one, flattened.
struct Query {
  const Graph* graph = nullptr;
  NormPair norms{Norm(2), Norm(2)};
  Domain domain;
};

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Weights that tokens share, read from affine parts of graphs.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "attention/dependence.h"
#include "attention/head_weights.h"
#include "linalg/tensor/row_matrix.h"

namespace lipscope {

// The matrices of affine functions of one value. Borrows the graph.
class AffineMaps {
 public:
  AffineMaps(const Graph& graph, ValueId origin)
      : graph_(graph), origin_(origin), dependence_(graph) {}
  const RowMatrix& matrix(ValueId id);

 private:
  const Graph& graph_;
  ValueId origin_;
  Dependence dependence_;
  std::map<std::uint32_t, RowMatrix> made_;
};

// Weights of one head for one of the factors: the hull over all tokens.
struct SharedWeights {
  IntervalMatrix weights;
  std::vector<Interval> bias;
};
// Nothing when an entry takes something from another token. `width`: of a token of the origin.
[[nodiscard]] std::optional<SharedWeights> shared_weights(const RowMatrix& map, const Box& at_zero,
                                                          const HeadPlaces& places, Index head,
                                                          Index width);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Logits as an affine function of one vector.
#pragma once

#include <optional>

#include "linalg/tensor/row_matrix.h"
#include "lipscope/graph.h"
#include "lipscope/norm.h"

namespace lipscope {

struct LastLayer {
  Graph before;    // from the inputs to that vector
  RowMatrix rows;  // one per class
};

// Nothing where the last node is not affine, or in several values that move.
[[nodiscard]] std::optional<LastLayer> split_last_layer(const Graph& graph);

// Rows i and j of a matrix, one minus the other, with all rounding in the radius.
[[nodiscard]] RowMatrix row_difference(const RowMatrix& rows, Index i, Index j);

// The norm of the functional row_i - row_j on vectors in the given norm, rounded up.
[[nodiscard]] double difference_norm_up(const RowMatrix& rows, Index i, Index j, const Norm& norm);

}  // namespace lipscope

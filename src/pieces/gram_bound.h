// SPDX-License-Identifier: Apache-2.0
// Lengths of gradients from the Gram matrix of the first weights: the input's dimension drops out,
// and a diagonal matrix above a small one bounds all choices of signs [local-10].
#pragma once

#include "pieces/row_bound.h"

namespace lipscope {

class GramBound {
 public:
  // Borrows the network, which has units.
  explicit GramBound(const LayeredNet& net);

  // Upper bounds, for all slopes in the intervals, all rounding included: of the l2 norm of the
  // gradient of one output, and of that of the whole Jacobian.
  [[nodiscard]] double row_up(const Slopes& slopes, Index row);
  [[nodiscard]] double whole_up(const Slopes& slopes);

 private:
  // u = middle + radius t, |t_i| <= 1: derivatives of an output by the values behind the first
  // units.
  struct Row {
    std::vector<double> middle, radius;
    std::vector<double> image;  // the Gram matrix times the middle, in plain arithmetic
    double size = 0;  // bound of the sum of |u_i| times the length of row i of the weights
  };
  [[nodiscard]] Row row_of(const Slopes& slopes, Index row);
  // Upper bound of |W'u|^2; of the radii alone without `with_middle`.
  [[nodiscard]] double square_up(const Row& row, bool with_middle) const;
  // Upper bound of |<W'u, W'v>|.
  [[nodiscard]] double product_up(const Row& u, const Row& v) const;

  const LayeredNet& net_;
  RowBound linear_;
  std::vector<double> gram_;    // W W' of the first weights, computed
  std::vector<double> length_;  // of their rows, rounded up
  double error_ = 0;            // |gram_ij - true| <= error * length_i * length_j
};

// Upper bound of the largest d'Md over |d_i| <= 1, for the symmetric n x n matrix given exactly:
// a sum of y_i with diag(y) - M positive semidefinite [local-10].
[[nodiscard]] double sign_maximum_up(const std::vector<double>& matrix, Index n);

}  // namespace lipscope

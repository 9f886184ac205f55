// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lipscope/tensor.h"

namespace lipscope {

// A symmetric block-tridiagonal matrix. Row-major blocks; of the diagonal blocks the lower triangle
// counts. A diagonal block that is itself diagonal may be given as its diagonal alone.
struct BlockTridiagonal {
  std::vector<Index> sizes;
  std::vector<std::vector<double>> diagonal;  // sizes[k]^2 entries, or sizes[k]
  std::vector<std::vector<double>> below;     // sizes[k + 1] x sizes[k]

  [[nodiscard]] bool is_diagonal(std::size_t k) const {
    return static_cast<Index>(diagonal[k].size()) == sizes[k] && sizes[k] != 1;
  }
  [[nodiscard]] double& entry(std::size_t k, Index i) {
    return diagonal[k][static_cast<std::size_t>(is_diagonal(k) ? i : i * (sizes[k] + 1))];
  }
};

// r such that lambda_min >= -r; +inf if the factorisation breaks down or something is not finite.
// Overwrites the matrix. [norms-16]
[[nodiscard]] double block_definite_deficit_up(BlockTridiagonal& matrix);

}  // namespace lipscope

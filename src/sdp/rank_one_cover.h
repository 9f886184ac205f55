// SPDX-License-Identifier: Apache-2.0
// Matrices bounded by their strongest direction and a multiple of the identity [global-7].
#pragma once

#include <utility>
#include <vector>

#include "linalg/tensor/row_matrix.h"

namespace lipscope {

// Row-major; the true matrix is within `error` in the spectral norm.
struct NearMatrix {
  Index rows = 0, cols = 0;
  std::vector<double> entries;
  double error = 0;
};
[[nodiscard]] NearMatrix near_matrix(const RowMatrix& map);
[[nodiscard]] NearMatrix transposed(const NearMatrix& a);
[[nodiscard]] double frobenius_up(const NearMatrix& a);  // of every matrix within the error
[[nodiscard]] double spectral_up(const NearMatrix& a);

// `along` u u' + `beside` I, both non-negative.
struct RankOneCover {
  std::vector<double> direction;
  double along = 0, beside = 0;
};

// Above X X'.
[[nodiscard]] RankOneCover cover_of_gram(const NearMatrix& x);

// Above X X' and above Y'Y for some X and Y with A = X Y.
struct FactorCovers {
  RankOneCover left, right;
};
[[nodiscard]] FactorCovers cover_of_factors(const NearMatrix& a);

}  // namespace lipscope

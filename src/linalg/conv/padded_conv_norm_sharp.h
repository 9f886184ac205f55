// SPDX-License-Identifier: Apache-2.0
// Spectral bounds of one dense matrix to nearly all digits, for maps whose norm is that of a small
// block. Internal to linalg.
#pragma once

#include <span>
#include <vector>

#include "lipscope/tensor.h"

namespace lipscope {

// Upper bound of the largest eigenvalue of XX' for the row-major X (n x depth), or +inf if
// shift I - XX' has no Cholesky factor. About n u above `shift`, n u of it: the residual is
// computed, not estimated, and nothing is assumed of LAPACK [norms-13].
[[nodiscard]] double sharp_top_up(Index n, Index depth, std::span<const double> x, double shift);

// ||Ax||_2 / ||x||_2 from below, with products split exactly. Row-major rows x cols.
[[nodiscard]] double sharp_quotient_down(Index rows, Index cols, std::span<const double> a,
                                         std::span<const double> x);

}  // namespace lipscope

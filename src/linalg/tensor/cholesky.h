// SPDX-License-Identifier: Apache-2.0
// Triangular factors, cut into tiles like the products of linalg/tensor/blas.h.
#pragma once

#include "lipscope/tensor.h"

namespace lipscope {

// The lower triangle of a (n x n, row-major) becomes that of F with F F' = a; false if it breaks
// down. Nothing is proved: F may hold NaN, see linalg/norm/definite.h. Sums are taken in parts, of
// the form that [norms-5] is about. The other triangle is left alone.
[[nodiscard]] bool cholesky(Index n, double* a, Index stride);

// b (rows x n) becomes b inv(F'), for the lower triangle F of `factor`.
void solve_lower(Index rows, Index n, const double* factor, Index factor_stride, double* b,
                 Index b_stride);

// The symmetric a (n x n), of which the lower triangle is looked at, becomes its inverse; false if
// its factorisation breaks down.
[[nodiscard]] bool invert_definite(Index n, double* a);

// Whether all entries are finite, or all of the lower triangle.
[[nodiscard]] bool all_finite(Index count, const double* a);
[[nodiscard]] bool lower_finite(Index n, const double* a);

}  // namespace lipscope

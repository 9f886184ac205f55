// SPDX-License-Identifier: Apache-2.0
// Bounds of norms of diag(s) - s s' for the weights of a row, taken as exact and complete: what
// SoftmaxNorm is made of.
#pragma once

#include <span>
#include <vector>

#include "lipscope/norm.h"
#include "softmax/row.h"

namespace lipscope::softmax_parts {

// s_1 (1 - s_1), the largest of all s_i (1 - s_i) [softmax-1].
[[nodiscard]] Interval largest_variance(const SoftmaxRow& row);
// The infinity -> 1 norm [softmax-2]; the second over complex vectors.
[[nodiscard]] Interval cut_norm(const SoftmaxRow& row);
[[nodiscard]] double complex_cut_norm_up(const SoftmaxRow& row);
// The 1 -> q norm, the largest q-norm of a column, for some q in the interval.
[[nodiscard]] Interval column_norm(const SoftmaxRow& row, const Interval& q);

// Upper bound of the p -> p norm, 1 < p < inf, from a positive vector found by iteration: that of
// the matrix of absolute values [softmax-9].
[[nodiscard]] double schur_norm_up(const SoftmaxRow& row, double p);

// Vectors stretched much, by nonlinear power iteration, plain arithmetic. The best one.
[[nodiscard]] std::vector<double> stretched_vector(const SoftmaxRow& row, const NormPair& norms);
// The eigenvector of the largest eigenvalue, plain arithmetic.
[[nodiscard]] std::vector<double> top_eigenvector(const SoftmaxRow& row);

}  // namespace lipscope::softmax_parts

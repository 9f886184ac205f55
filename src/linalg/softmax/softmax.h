// SPDX-License-Identifier: Apache-2.0
// Softmax and its kin on rows of floats or doubles:
//
//   softmax      s_i = exp(lambda x_i) / sum over j of exp(lambda x_j)
//   log-softmax  log s_i = lambda x_i - log sum over j of exp(lambda x_j)
//   log-sum-exp  log sum over j of exp(lambda x_j)
//   softmin      softmax with -lambda
//
//   softmax_rows(RowLayout::adjacent(rows, 512), scores, weights, {.lambda = 0.125});
//
// lambda, the inverse temperature, is finite and not 0; it may be negative. Limits, with z = lambda
// x:
// * Entries with z = +inf share equally, all others get 0; log-sum-exp is +inf.
// * z = -inf gives exactly 0, and -inf in log-softmax. A row of nothing else, a row of masked
// entries
//   and an empty row have the softmax 0 in every entry, and the log-sum-exp -inf.
// * NaN throws Error(kUsage) naming the row and the column, counted from 0. Rows may be half
// written
//   then. A NaN under the mask is not seen.
// * Results below 2^-126 (float) or 2^-1022 (double) may be 0.
//
// Errors (docs/theory/softmax-kernel.md). The rounding of x_i - max, the largest error of the usual
// methods, does not occur. kAccurate: softmax within 4 ulp where z is within 80 of the row's
// largest; in double the relative error is at most 7.7 * 2^-53, proved, on processors with a fused
// multiply-add. kFast: the sum is a plain one, 6 ulp at most in all tests. Log-softmax and
// log-sum-exp have absolute errors: a few units in the last place of the largest of 1, |z_i| and
// |log-sum-exp|.
//
// Everything runs on the calling thread. Thread-safe.
#pragma once

#include <cstdint>

#include "lipscope/tensor.h"

namespace lipscope {

enum class SoftmaxMode : std::uint8_t { kFast, kAccurate };

// Entry i of row r is at r * row_stride + i * step.
struct RowLayout {
  Index rows = 0, length = 0, row_stride = 0, step = 1;
  [[nodiscard]] static RowLayout adjacent(Index rows, Index length) {
    return {rows, length, length, 1};
  }
  // Column r of a row-major matrix with `rows` columns is row r.
  [[nodiscard]] static RowLayout columns(Index rows, Index length) {
    return {rows, length, 1, rows};
  }
};

struct SoftmaxOptions {
  double lambda = 1;
  SoftmaxMode mode = SoftmaxMode::kFast;
  const std::uint8_t* mask = nullptr;  // laid out as x; 0: the entry counts as z = -inf
};

// Results are laid out as x and may replace it.
void softmax_rows(const RowLayout& layout, const float* x, float* s, const SoftmaxOptions& = {});
void softmax_rows(const RowLayout& layout, const double* x, double* s, const SoftmaxOptions& = {});
void log_softmax_rows(const RowLayout& layout, const float* x, float* y,
                      const SoftmaxOptions& = {});
void log_softmax_rows(const RowLayout& layout, const double* x, double* y,
                      const SoftmaxOptions& = {});
// One entry per row, adjacent.
void log_sum_exp_rows(const RowLayout& layout, const float* x, float* y,
                      const SoftmaxOptions& = {});
void log_sum_exp_rows(const RowLayout& layout, const double* x, double* y,
                      const SoftmaxOptions& = {});

template <class T>
void softmin_rows(const RowLayout& layout, const T* x, T* s, SoftmaxOptions options = {}) {
  options.lambda = -options.lambda;
  softmax_rows(layout, x, s, options);
}

}  // namespace lipscope

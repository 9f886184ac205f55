// SPDX-License-Identifier: Apache-2.0
// The two BLAS calls used here, overloaded by scalar type. Row-major.
#pragma once

#include <cblas.h>

#include "base/checkpoint.h"
#include "lipscope/tensor.h"

namespace lipscope {

// One matrix operand: op(X) = X, or its transpose, with the distance between stored rows.
template <class T>
struct MatrixArg {
  const T* data;
  Index stride;
  bool transposed = false;
};

namespace detail {
inline CBLAS_TRANSPOSE blas_transpose(bool on) { return on ? CblasTrans : CblasNoTrans; }
inline void charge_product(Index m, Index n, Index k) {
  constexpr double kCall = 300;
  charge(kCall +
         kBlasOperation * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
}
}  // namespace detail

// c (m x n) = alpha op(a) op(b) + beta c. All sizes must fit int.
inline void gemm(Index m, Index n, Index k, double alpha, MatrixArg<double> a, MatrixArg<double> b,
                 double beta, double* c, Index c_stride) {
  detail::charge_product(m, n, k);
  cblas_dgemm(CblasRowMajor, detail::blas_transpose(a.transposed),
              detail::blas_transpose(b.transposed), static_cast<int>(m), static_cast<int>(n),
              static_cast<int>(k), alpha, a.data, static_cast<int>(a.stride), b.data,
              static_cast<int>(b.stride), beta, c, static_cast<int>(c_stride));
}
inline void gemm(Index m, Index n, Index k, float alpha, MatrixArg<float> a, MatrixArg<float> b,
                 float beta, float* c, Index c_stride) {
  detail::charge_product(m, n, k);
  cblas_sgemm(CblasRowMajor, detail::blas_transpose(a.transposed),
              detail::blas_transpose(b.transposed), static_cast<int>(m), static_cast<int>(n),
              static_cast<int>(k), alpha, a.data, static_cast<int>(a.stride), b.data,
              static_cast<int>(b.stride), beta, c, static_cast<int>(c_stride));
}

// y = alpha op(a) x + beta y, where op(a) is rows x cols.
inline void gemv(Index rows, Index cols, double alpha, MatrixArg<double> a, const double* x,
                 Index x_stride, double beta, double* y, Index y_stride) {
  detail::charge_product(rows, cols, 10);  // bound by memory
  cblas_dgemv(CblasRowMajor, detail::blas_transpose(a.transposed),
              static_cast<int>(a.transposed ? cols : rows),
              static_cast<int>(a.transposed ? rows : cols), alpha, a.data,
              static_cast<int>(a.stride), x, static_cast<int>(x_stride), beta, y,
              static_cast<int>(y_stride));
}
inline void gemv(Index rows, Index cols, float alpha, MatrixArg<float> a, const float* x,
                 Index x_stride, float beta, float* y, Index y_stride) {
  detail::charge_product(rows, cols, 10);  // bound by memory
  cblas_sgemv(CblasRowMajor, detail::blas_transpose(a.transposed),
              static_cast<int>(a.transposed ? cols : rows),
              static_cast<int>(a.transposed ? rows : cols), alpha, a.data,
              static_cast<int>(a.stride), x, static_cast<int>(x_stride), beta, y,
              static_cast<int>(y_stride));
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// The BLAS calls used here, overloaded by scalar type. Row-major.
//
// OpenBLAS runs on the thread that calls it. Large products are cut into tiles, by their sizes
// alone, and parallel_for shares the tiles: results do not depend on how many threads there are.
// The work is counted, and long products end where the run has to (base/checkpoint.h).
#pragma once

#include <cblas.h>

#include "lipscope/tensor.h"

namespace lipscope {

// One matrix operand: op(X) = X, or its transpose, with the distance between stored rows.
template <class T>
struct MatrixArg {
  const T* data;
  Index stride;
  bool transposed = false;
};

// c (m x n) = alpha op(a) op(b) + beta c. All sizes must fit int.
void gemm(Index m, Index n, Index k, double alpha, MatrixArg<double> a, MatrixArg<double> b,
          double beta, double* c, Index c_stride);
void gemm(Index m, Index n, Index k, float alpha, MatrixArg<float> a, MatrixArg<float> b,
          float beta, float* c, Index c_stride);

// y = alpha op(a) x + beta y, where op(a) is rows x cols.
void gemv(Index rows, Index cols, double alpha, MatrixArg<double> a, const double* x,
          Index x_stride, double beta, double* y, Index y_stride);
void gemv(Index rows, Index cols, float alpha, MatrixArg<float> a, const float* x, Index x_stride,
          float beta, float* y, Index y_stride);

enum class Triangle { kLower, kUpper };

// One triangle of c (n x n) = alpha op(a) op(a)' + beta c, where op(a) is n x k; the other one is
// left alone.
void syrk(Triangle triangle, Index n, Index k, double alpha, MatrixArg<double> a, double beta,
          double* c, Index c_stride);

// The entries above the diagonal of a (n x n), times `sign`, also below it.
void copy_upper_to_lower(Index n, double* a, double sign = 1);

// y = a x for the symmetric a (n x n) whose upper triangle is given.
void symv(Index n, const double* a, const double* x, double* y);

}  // namespace lipscope

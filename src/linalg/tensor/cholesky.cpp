// SPDX-License-Identifier: Apache-2.0
#include "linalg/tensor/cholesky.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/checkpoint.h"
#include "base/parallel.h"
#include "linalg/tensor/blas.h"
#include "linalg/tensor/lapack.h"

namespace lipscope {
namespace {

constexpr Index kSmallFactor = 192;
constexpr Index kWorthPiece = Index{1} << 18;  // entries

Index half_of(Index n) { return (n / 2 + 47) / 48 * 48; }

double real_size(Index n) { return static_cast<double>(n); }

// 0 * inf and 0 * NaN are NaN.
bool row_finite(const double* a, Index n) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) sum += a[i] * 0.0;
  return sum == 0;
}

}  // namespace

bool all_finite(Index count, const double* a) {
  std::atomic<bool> good = true;
  parallel_for(count, kWorthPiece, [&](Index begin, Index end) {
    if (!row_finite(a + begin, end - begin)) good = false;
  });
  return good;
}

bool lower_finite(Index n, const double* a) {
  std::atomic<bool> good = true;
  parallel_for(n, std::max<Index>(1, kWorthPiece / std::max<Index>(1, n)),
               [&](Index begin, Index end) {
                 for (Index i = begin; i < end; ++i) {
                   if (!row_finite(a + i * n, i + 1)) good = false;
                 }
               });
  return good;
}

// In halves, so that nearly all of the work is in large products.
bool cholesky(Index n, double* a, Index stride) {
  if (n == 0) return true;
  if (n <= kSmallFactor) {
    charge(0.5 * kBlasOperation * real_size(n) * real_size(n) * real_size(n));
    const int size = static_cast<int>(n), distance = static_cast<int>(stride);
    int info = 0;
    dpotrf_("U", &size, a, &distance, &info, 1);  // row-major lower is column-major upper
    return info == 0;
  }
  const Index half = half_of(n), rest = n - half;
  double* const below = a + half * stride;
  double* const last = below + half;
  if (!cholesky(half, a, stride)) return false;
  solve_lower(rest, half, a, stride, below, stride);
  syrk(Triangle::kLower, rest, half, -1.0, {below, stride}, 1.0, last, stride);
  return cholesky(rest, last, stride);
}

void solve_lower(Index rows, Index n, const double* factor, Index factor_stride, double* b,
                 Index b_stride) {
  if (n > kSmallFactor) {
    const Index half = half_of(n), rest = n - half;
    const double* const below = factor + half * factor_stride;
    solve_lower(rows, half, factor, factor_stride, b, b_stride);
    gemm(rows, rest, half, -1.0, {b, b_stride}, {below, factor_stride, true}, 1.0, b + half,
         b_stride);
    return solve_lower(rows, rest, below + half, factor_stride, b + half, b_stride);
  }
  constexpr Index kRows = 96;
  parallel_for((rows + kRows - 1) / kRows, 1, [&](Index begin, Index end) {
    for (Index piece = begin; piece < end; ++piece) {
      const Index from = piece * kRows, count = std::min(kRows, rows - from);
      charge(kBlasOperation * real_size(count) * real_size(n) * real_size(n));
      cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit,
                  static_cast<int>(count), static_cast<int>(n), 1.0, factor,
                  static_cast<int>(factor_stride), b + from * b_stride, static_cast<int>(b_stride));
    }
  });
}

// With X = inv(F'), upper triangular, the inverse is X X'.
bool invert_definite(Index n, double* a) {
  if (!cholesky(n, a, n)) return false;
  std::vector<double> x(static_cast<std::size_t>(n * n));
  for (Index i = 0; i < n; ++i) x[static_cast<std::size_t>(i * (n + 1))] = 1;
  constexpr Index kRows = kSmallFactor;
  for (Index row = 0; row < n; row += kRows) {  // zero before the diagonal
    solve_lower(std::min(kRows, n - row), n - row, a + row * (n + 1), n, x.data() + row * (n + 1),
                n);
  }
  for (Index row = 0; row < n; row += kRows) {
    const Index rows = std::min(kRows, n - row);
    gemm(rows, row + rows, n - row, 1.0, {x.data() + row * (n + 1), n}, {x.data() + row, n, true},
         0.0, a + row * n, n);
  }
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < i; ++j) a[j * n + i] = a[i * n + j];
  }
  return true;
}

}  // namespace lipscope

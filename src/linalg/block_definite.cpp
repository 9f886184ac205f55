// SPDX-License-Identifier: Apache-2.0
#include "linalg/block_definite.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "linalg/blas.h"
#include "linalg/lapack.h"

namespace lipscope {
namespace {

bool finite(const std::vector<double>& entries) {
  double sum = 0;
  for (const double e : entries) sum += e * 0.0;
  return sum == 0;
}

// Only the lower triangle: the other one is scratch of the caller.
bool lower_finite(const std::vector<double>& entries, Index n) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j <= i; ++j) sum += entries[static_cast<std::size_t>(i * n + j)] * 0.0;
  }
  return sum == 0;
}

bool factor(BlockTridiagonal& m, std::size_t k) {
  const Index n = m.sizes[k];
  std::vector<double>& d = m.diagonal[k];
  if (m.is_diagonal(k)) {
    for (double& e : d) e = std::sqrt(e);
  } else {
    const int size = static_cast<int>(n);
    int info = 0;
    dpotrf_("U", &size, d.data(), &size, &info, 1);  // row-major lower is column-major upper
    if (info != 0 || !lower_finite(d, n)) return false;
  }
  for (Index i = 0; i < n; ++i) {
    if (!(m.entry(k, i) > 0) || !std::isfinite(m.entry(k, i))) return false;
  }
  return true;
}

// below <- below F^-1 with diagonal = F' F, and the next diagonal block minus its square.
bool eliminate(BlockTridiagonal& m, std::size_t k) {
  const Index n = m.sizes[k], rows = m.sizes[k + 1];
  std::vector<double>& b = m.below[k];
  if (m.is_diagonal(k)) {
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < n; ++j)
        b[static_cast<std::size_t>(i * n + j)] /= m.diagonal[k][static_cast<std::size_t>(j)];
    }
  } else {
    cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit,
                static_cast<int>(rows), static_cast<int>(n), 1.0, m.diagonal[k].data(),
                static_cast<int>(n), b.data(), static_cast<int>(n));
  }
  if (!finite(b)) return false;
  cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, static_cast<int>(rows), static_cast<int>(n),
              -1.0, b.data(), static_cast<int>(n), 1.0, m.diagonal[k + 1].data(),
              static_cast<int>(rows));
  return true;
}

}  // namespace

double block_definite_deficit_up(BlockTridiagonal& matrix) {
  double trace = 0, order = 0;
  Index widest = 0, before = 0;
  for (std::size_t k = 0; k < matrix.sizes.size(); ++k) {
    const Index n = matrix.sizes[k];
    const bool good =
        matrix.is_diagonal(k) ? finite(matrix.diagonal[k]) : lower_finite(matrix.diagonal[k], n);
    if (!good || (k > 0 && (matrix.is_diagonal(k) || !finite(matrix.below[k - 1])))) return kInf;
    for (Index i = 0; i < n; ++i) trace = add_up(trace, matrix.entry(k, i));
    widest = std::max(widest, before + n);
    before = n;
    order += static_cast<double>(n);
  }
  for (std::size_t k = 0; k < matrix.sizes.size(); ++k) {
    if (!factor(matrix, k)) return kInf;
    if (k + 1 < matrix.sizes.size() && !eliminate(matrix, k)) return kInf;
  }
  const double gamma = gamma_up(static_cast<std::size_t>(2 * widest + 16));
  if (!(gamma < 0.5)) return kInf;
  const double underflow = mul_up(order, mul_up(add_up(order + 1, trace), 0x1p-1070));
  return add_up(mul_up(div_up(gamma, sub_down(1, gamma)), trace), underflow);
}

}  // namespace lipscope

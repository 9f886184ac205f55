// SPDX-License-Identifier: Apache-2.0
// Slow twins in long double: accurate to about 1e-17 relative, far below one ulp of a double.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "linalg/conv/convolution.h"

namespace lipscope::reference {

constexpr long double kReferenceError = 1e-17L;

inline Index integer(std::mt19937_64& random, Index least, Index most) {
  return std::uniform_int_distribution<Index>(least, most)(random);
}

struct Matrix {
  Index rows = 0, cols = 0;
  std::vector<long double> at;  // row-major
  Matrix(Index r, Index c) : rows(r), cols(c), at(static_cast<std::size_t>(r * c)) {}
  long double& operator()(Index i, Index j) { return at[i * cols + j]; }
};

// Largest singular value by one-sided Jacobi rotations of the columns.
inline long double spectral(Matrix a) {
  if (a.rows < a.cols) {
    Matrix t(a.cols, a.rows);
    for (Index i = 0; i < a.rows; ++i) {
      for (Index j = 0; j < a.cols; ++j) t(j, i) = a(i, j);
    }
    a = t;
  }
  const auto dot = [&](Index j, Index k) {
    long double s = 0;
    for (Index i = 0; i < a.rows; ++i) s += a(i, j) * a(i, k);
    return s;
  };
  for (int sweep = 0; sweep < 60; ++sweep) {
    bool rotated = false;
    for (Index j = 0; j < a.cols; ++j) {
      for (Index k = j + 1; k < a.cols; ++k) {
        const long double aa = dot(j, j), bb = dot(k, k), ab = dot(j, k);
        if (std::fabs(ab) <= 1e-19L * std::sqrt(aa) * std::sqrt(bb) || ab == 0) continue;
        rotated = true;
        const long double zeta = (bb - aa) / (2 * ab);
        const long double t = (zeta >= 0 ? 1 : -1) / (std::fabs(zeta) + std::sqrt(1 + zeta * zeta));
        const long double c = 1 / std::sqrt(1 + t * t), s = c * t;
        for (Index i = 0; i < a.rows; ++i) {
          const long double x = a(i, j), y = a(i, k);
          a(i, j) = c * x - s * y;
          a(i, k) = s * x + c * y;
        }
      }
    }
    if (!rotated) break;
  }
  long double top = 0;
  for (Index j = 0; j < a.cols; ++j) top = std::max(top, dot(j, j));
  return std::sqrt(top);
}

inline long double vector_norm(const std::vector<long double>& x, double p) {
  long double top = 0;
  for (const long double v : x) top = std::max(top, std::fabs(v));
  if (top == 0 || std::isinf(p)) return top;
  long double sum = 0;
  for (const long double v : x) sum += std::pow(std::fabs(v) / top, static_cast<long double>(p));
  return top * std::pow(sum, 1 / static_cast<long double>(p));
}

inline long double quotient(Matrix& a, const std::vector<long double>& x, double p, double q) {
  std::vector<long double> y(static_cast<std::size_t>(a.rows));
  for (Index i = 0; i < a.rows; ++i) {
    for (Index j = 0; j < a.cols; ++j) y[i] += a(i, j) * x[j];
  }
  const long double below = vector_norm(x, p);
  return below == 0 ? 0 : vector_norm(y, q) / below;
}

// The definition, term by term.
inline Matrix conv_matrix(const ConvShape& s, const double* w) {
  const Index in = s.input_size(), out = s.output_size(), ci = s.in_channels / s.groups;
  const Index co = s.out_channels / s.groups;
  Matrix a(s.out_channels * out, s.in_channels * in);
  for (Index m = 0; m < s.out_channels; ++m) {
    for (Index c = 0; c < ci; ++c) {
      for (Index o = 0; o < out; ++o) {
        for (Index k = 0; k < s.kernel_size(); ++k) {
          const Index ot[3] = {o / (s.output[1] * s.output[2]), o / s.output[2] % s.output[1],
                               o % s.output[2]};
          const Index kt[3] = {k / (s.kernel[1] * s.kernel[2]), k / s.kernel[2] % s.kernel[1],
                               k % s.kernel[2]};
          Index at = 0;
          bool inside = true;
          for (std::size_t x = 0; x < 3; ++x) {
            const Index i = ot[x] * s.stride[x] - s.pad[x] + kt[x] * s.dilation[x];
            inside = inside && i >= 0 && i < s.input[x];
            at = at * s.input[x] + i;
          }
          if (!inside) continue;
          a(m * out + o, (m / co * ci + c) * in + at) =
              static_cast<long double>(w[(m * ci + c) * s.kernel_size() + k]);
        }
      }
    }
  }
  return a;
}

}  // namespace lipscope::reference

// SPDX-License-Identifier: Apache-2.0
#include "linalg/tensor/blas.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/checkpoint.h"
#include "base/parallel.h"

namespace lipscope {
namespace {

CBLAS_TRANSPOSE blas_transpose(bool on) { return on ? CblasTrans : CblasNoTrans; }
int blas_int(Index n) { return static_cast<int>(n); }

void call_gemm(Index m, Index n, Index k, double alpha, MatrixArg<double> a, MatrixArg<double> b,
               double beta, double* c, Index c_stride) {
  cblas_dgemm(CblasRowMajor, blas_transpose(a.transposed), blas_transpose(b.transposed),
              blas_int(m), blas_int(n), blas_int(k), alpha, a.data, blas_int(a.stride), b.data,
              blas_int(b.stride), beta, c, blas_int(c_stride));
}
void call_gemm(Index m, Index n, Index k, float alpha, MatrixArg<float> a, MatrixArg<float> b,
               float beta, float* c, Index c_stride) {
  cblas_sgemm(CblasRowMajor, blas_transpose(a.transposed), blas_transpose(b.transposed),
              blas_int(m), blas_int(n), blas_int(k), alpha, a.data, blas_int(a.stride), b.data,
              blas_int(b.stride), beta, c, blas_int(c_stride));
}
void call_gemv(Index rows, Index cols, double alpha, MatrixArg<double> a, const double* x,
               Index x_stride, double beta, double* y, Index y_stride) {
  cblas_dgemv(CblasRowMajor, blas_transpose(a.transposed), blas_int(a.transposed ? cols : rows),
              blas_int(a.transposed ? rows : cols), alpha, a.data, blas_int(a.stride), x,
              blas_int(x_stride), beta, y, blas_int(y_stride));
}
void call_gemv(Index rows, Index cols, float alpha, MatrixArg<float> a, const float* x,
               Index x_stride, float beta, float* y, Index y_stride) {
  cblas_sgemv(CblasRowMajor, blas_transpose(a.transposed), blas_int(a.transposed ? cols : rows),
              blas_int(a.transposed ? rows : cols), alpha, a.data, blas_int(a.stride), x,
              blas_int(x_stride), beta, y, blas_int(y_stride));
}

double as_real(Index n) { return static_cast<double>(n); }

// Multiplications of a product, with what it takes to bring its operands in place.
double gemm_cost(Index m, Index n, Index k) {
  constexpr double kMove = 12;
  const double rows = as_real(m), cols = as_real(n), depth = as_real(k);
  return rows * cols * depth + kMove * (rows * depth + depth * cols + rows * cols);
}
constexpr double kCall = 300;          // what a small product costs at least
constexpr double kLargeProduct = 4e7;  // about a millisecond
constexpr Index kLargestTile = 1008, kLongest = 768;

// A length cut into parts of nearly one size: threads that share them end together. OpenBLAS likes
// multiples of 48, so all but the end of the last part are.
class Cut {
 public:
  explicit Cut(Index length, Index wanted)
      : length_(length),
        units_((length + kUnit - 1) / kUnit),
        parts_(std::clamp<Index>(std::max(wanted, (length + kLargestTile - 1) / kLargestTile), 1,
                                 std::max<Index>(1, units_))) {}
  [[nodiscard]] Index parts() const { return parts_; }
  [[nodiscard]] Index begin(Index part) const {
    return std::min(length_, units_ * part / parts_ * kUnit);
  }
  [[nodiscard]] Index size(Index part) const { return begin(part + 1) - begin(part); }

 private:
  static constexpr Index kUnit = 48;
  Index length_, units_, parts_;
};

// Multiplications for each entry of the operands that is brought in place: what a tile is good at.
double reuse(double rows, double cols) { return rows * cols / (rows + cols); }

// Tiles of nearly one size, a power of two: two, four and eight threads share them well. Two where
// a product is large, more as long as they are not much worse at their work than it is.
struct Tiling {
  Cut down, across;
};
Tiling tiling_of(Index m, Index n, double cost) {
  constexpr double kWorthTile = 1.5e7, kEnoughReuse = 200;
  constexpr Index kEnoughTiles = 8;
  Index down = 1, across = 1;
  while (down * across < kEnoughTiles && cost >= 2 * kWorthTile * as_real(down * across)) {
    const double rows = as_real(m) / as_real(down), cols = as_real(n) / as_real(across);
    const double next = rows >= cols ? reuse(rows / 2, cols) : reuse(rows, cols / 2);
    if (down * across > 1 && next < kEnoughReuse && next < 0.9 * reuse(rows, cols)) break;
    (rows >= cols ? down : across) *= 2;
  }
  return {Cut(m, down), Cut(n, across)};
}

template <class T>
MatrixArg<T> rows_from(MatrixArg<T> a, Index row) {
  a.data += a.transposed ? row : row * a.stride;
  return a;
}
template <class T>
MatrixArg<T> columns_from(MatrixArg<T> a, Index column) {
  a.data += a.transposed ? column * a.stride : column;
  return a;
}

// Long sums are cut, too, so that none takes long. `share`: of the work of a product of a tile.
template <class Body>
void over_depth(Index rows, Index cols, Index k, double share, Body&& body) {
  for (Index from = 0; from < k; from += kLongest) {
    const Index depth = std::min(kLongest, k - from);
    checkpoint(share * kBlasOperation * gemm_cost(rows, cols, depth));
    body(from, depth);
  }
}

template <class T>
void tiled_gemm(Index m, Index n, Index k, T alpha, MatrixArg<T> a, MatrixArg<T> b, T beta, T* c,
                Index c_stride) {
  const double cost = gemm_cost(m, n, k);
  if (!(cost >= kLargeProduct) || k == 0) {
    charge(kCall + kBlasOperation * cost);
    return call_gemm(m, n, k, alpha, a, b, beta, c, c_stride);
  }
  const auto [down, across] = tiling_of(m, n, cost);
  parallel_for(down.parts() * across.parts(), 1, [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t) {
      const Index i = t / across.parts(), j = t % across.parts();
      const Index row = down.begin(i), column = across.begin(j);
      const Index rows = down.size(i), cols = across.size(j);
      over_depth(rows, cols, k, 1, [&](Index from, Index depth) {
        call_gemm(rows, cols, depth, alpha, columns_from(rows_from(a, row), from),
                  columns_from(rows_from(b, from), column), from == 0 ? beta : T(1),
                  c + row * c_stride + column, c_stride);
      });
    }
  });
}

template <class T>
void shared_gemv(Index rows, Index cols, T alpha, MatrixArg<T> a, const T* x, Index x_stride,
                 T beta, T* y, Index y_stride) {
  constexpr Index kWorthPiece = Index{1} << 17;  // entries
  constexpr double kEntry = 0.4;                 // bound by memory
  const double entries = as_real(rows) * as_real(cols);
  if (entries < 2 * as_real(kWorthPiece)) {
    charge(kCall + kEntry * entries);
    return call_gemv(rows, cols, alpha, a, x, x_stride, beta, y, y_stride);
  }
  parallel_for(rows, std::max<Index>(64, kWorthPiece / cols), [&](Index begin, Index end) {
    checkpoint(kEntry * as_real(end - begin) * as_real(cols));
    call_gemv(end - begin, cols, alpha, rows_from(a, begin), x, x_stride, beta,
              y + begin * y_stride, y_stride);
  });
}

void call_syrk(Triangle triangle, Index n, Index k, double alpha, MatrixArg<double> a, double beta,
               double* c, Index c_stride) {
  cblas_dsyrk(CblasRowMajor, triangle == Triangle::kLower ? CblasLower : CblasUpper,
              blas_transpose(a.transposed), blas_int(n), blas_int(k), alpha, a.data,
              blas_int(a.stride), beta, c, blas_int(c_stride));
}

}  // namespace

void gemm(Index m, Index n, Index k, double alpha, MatrixArg<double> a, MatrixArg<double> b,
          double beta, double* c, Index c_stride) {
  tiled_gemm(m, n, k, alpha, a, b, beta, c, c_stride);
}
void gemm(Index m, Index n, Index k, float alpha, MatrixArg<float> a, MatrixArg<float> b,
          float beta, float* c, Index c_stride) {
  tiled_gemm(m, n, k, alpha, a, b, beta, c, c_stride);
}

void gemv(Index rows, Index cols, double alpha, MatrixArg<double> a, const double* x,
          Index x_stride, double beta, double* y, Index y_stride) {
  shared_gemv(rows, cols, alpha, a, x, x_stride, beta, y, y_stride);
}
void gemv(Index rows, Index cols, float alpha, MatrixArg<float> a, const float* x, Index x_stride,
          float beta, float* y, Index y_stride) {
  shared_gemv(rows, cols, alpha, a, x, x_stride, beta, y, y_stride);
}

void syrk(Triangle triangle, Index n, Index k, double alpha, MatrixArg<double> a, double beta,
          double* c, Index c_stride) {
  const double cost = 0.5 * gemm_cost(n, n, k);
  if (!(cost >= kLargeProduct) || k == 0) {
    charge(kCall + kBlasOperation * cost);
    return call_syrk(triangle, n, k, alpha, a, beta, c, c_stride);
  }
  constexpr Index kWide = 1500;
  const Cut cut(n, n < kWide ? 2 : 4);
  std::vector<std::pair<Index, Index>> tiles;
  for (Index i = 0; i < cut.parts(); ++i) {
    for (Index j = 0; j <= i; ++j)
      tiles.push_back(triangle == Triangle::kLower ? std::pair(i, j) : std::pair(j, i));
  }
  const MatrixArg<double> turned{a.data, a.stride, !a.transposed};
  parallel_for(std::ssize(tiles), 1, [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t) {
      const auto [i, j] = tiles[static_cast<std::size_t>(t)];
      const Index row = cut.begin(i), column = cut.begin(j);
      const Index rows = cut.size(i), cols = cut.size(j);
      double* const tile = c + row * c_stride + column;
      over_depth(rows, cols, k, i == j ? 0.5 : 1, [&](Index from, Index depth) {
        const MatrixArg<double> left = columns_from(rows_from(a, row), from);
        const double keep = from == 0 ? beta : 1.0;
        if (i == j) return call_syrk(triangle, rows, depth, alpha, left, keep, tile, c_stride);
        call_gemm(rows, cols, depth, alpha, left, columns_from(rows_from(turned, from), column),
                  keep, tile, c_stride);
      });
    }
  });
}

void copy_upper_to_lower(Index n, double* a, double sign) {
  constexpr Index kBlock = 32;
  const Index bands = (n + kBlock - 1) / kBlock;
  const Index grain = std::max<Index>(1, (Index{1} << 18) / std::max<Index>(1, kBlock * n));
  parallel_for(bands, grain, [&](Index begin, Index end) {
    for (Index i0 = begin * kBlock; i0 < std::min(end * kBlock, n); i0 += kBlock) {
      for (Index j0 = 0; j0 <= i0; j0 += kBlock) {
        for (Index i = i0; i < std::min(i0 + kBlock, n); ++i) {
          for (Index j = j0; j < std::min(j0 + kBlock, i); ++j) a[i * n + j] = sign * a[j * n + i];
        }
      }
    }
  });
}

// Bands of rows of the triangle, each with a vector of its own; these are added in order.
namespace {

// y = A x for the upper triangle of A, row by row. OpenBLAS's own dsymv reads past the end of A
// with some of its kernels.
void call_symv(Index n, const double* a, Index stride, const double* x, double* y) {
  std::fill(y, y + n, 0.0);
  for (Index i = 0; i < n; ++i) {
    const double* const row = a + i * stride;
    const auto rest = blas_int(n - i - 1);
    y[i] += row[i] * x[i] + cblas_ddot(rest, row + i + 1, 1, x + i + 1, 1);
    cblas_daxpy(rest, x[i], row + i + 1, 1, y + i + 1, 1);
  }
}

}  // namespace

void symv(Index n, const double* a, const double* x, double* y) {
  constexpr Index kBand = 256;
  constexpr Index kLarge = 1024;
  if (n < kLarge) {
    charge(0.5 * as_real(n) * as_real(n));
    return call_symv(n, a, n, x, y);
  }
  const Index bands = (n + kBand - 1) / kBand;
  std::vector<std::vector<double>> sums(static_cast<std::size_t>(bands));
  parallel_for(bands, 1, [&](Index begin, Index end) {
    for (Index band = begin; band < end; ++band) {
      const Index from = band * kBand, rows = std::min(kBand, n - from), rest = n - from - rows;
      checkpoint(as_real(rows) * as_real(rest));
      std::vector<double>& sum = sums[static_cast<std::size_t>(band)];
      sum.resize(static_cast<std::size_t>(n - from));
      const double* const block = a + from * (n + 1);
      call_symv(rows, block, n, x + from, sum.data());
      if (rest == 0) continue;
      call_gemv(rows, rest, 1.0, {block + rows, n}, x + from + rows, 1, 1.0, sum.data(), 1);
      call_gemv(rest, rows, 1.0, {block + rows, n, true}, x + from, 1, 0.0, sum.data() + rows, 1);
    }
  });
  std::fill(y, y + n, 0.0);
  for (const std::vector<double>& sum : sums) {
    double* const to = y + n - std::ssize(sum);
    for (std::size_t i = 0; i < sum.size(); ++i) to[i] += sum[i];
  }
}

}  // namespace lipscope

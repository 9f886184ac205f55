// SPDX-License-Identifier: Apache-2.0
#include "estimate/lipsdp_solver.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "estimate/lipsdp_dual.h"
#include "linalg/blas.h"
#include "linalg/definite.h"
#include "linalg/lapack.h"

namespace lipscope {
namespace {

using Scales = std::vector<std::vector<double>>;
using Matrix = std::vector<double>;

// W Y W' for symmetric Y.
Matrix sandwich(const ChainLayer& layer, const Matrix& y) {
  Matrix half(static_cast<std::size_t>(layer.rows * layer.cols)),
      result(static_cast<std::size_t>(layer.rows * layer.rows));
  gemm(layer.rows, layer.cols, layer.cols, 1.0, {layer.weights.data(), layer.cols},
       {y.data(), layer.cols}, 0.0, half.data(), layer.cols);
  gemm(layer.rows, layer.rows, layer.cols, 1.0, {half.data(), layer.cols},
       {layer.weights.data(), layer.cols, true}, 0.0, result.data(), layer.rows);
  return result;
}

// Symmetric positive definite a: a <- inverse of its Cholesky factor applied to b, that is
// b <- F^-T b with a = F' F in LAPACK's words. False when a is not positive definite.
bool solve_half(Matrix& a, Index n, Matrix& b) {
  const int size = static_cast<int>(n);
  int info = 0;
  dpotrf_("L", &size, a.data(), &size, &info, 1);
  if (info != 0) return false;
  for (Index i = 0; i < n; ++i) {
    if (!(a[static_cast<std::size_t>(i * (n + 1))] > 0)) return false;
  }
  // Column-major F b' for the symmetric b: the rows of the row-major b are its columns.
  cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, size, size, 1.0,
              a.data(), size, b.data(), size);
  return true;
}

double largest_eigenvalue(const Matrix& a, Index n) {
  const auto multiply = [&](const double* x, double* y) {
    gemv(n, n, 1.0, {a.data(), n}, x, 1, 0.0, y, 1);
  };
  return lanczos(n, multiply, {}, 1e-14, 300).value;
}

// What the scales prove [global-4], and the scales completed where they were not determined.
struct Proof {
  double rho = HUGE_VAL;
  Scales scales;
};

Proof value_of(const Chain& chain, Scales scales, double widen) {
  const ChainLayer& first = chain.layers.front();
  Matrix p(static_cast<std::size_t>(first.rows * first.rows));
  gemm(first.rows, first.rows, first.cols, 1.0, {first.weights.data(), first.cols},
       {first.weights.data(), first.cols, true}, 0.0, p.data(), first.rows);
  double factor = 1;
  for (std::size_t k = 0; k < scales.size(); ++k) {
    factor *= (1 + widen) * (1 + widen);
    const Index n = chain.layers[k].rows;
    Matrix b = p, half = p;
    for (Index i = 0; i < n; ++i) {
      double& s = scales[k][static_cast<std::size_t>(i)];
      const double own = p[static_cast<std::size_t>(i * (n + 1))];
      s = s > 0 ? s * factor : 4 * own + 1e-12;
      for (Index j = 0; j < n; ++j) {
        double& e = b[static_cast<std::size_t>(i * n + j)];
        e = (i == j ? s : 0) - e;
      }
    }
    if (!solve_half(b, n, half)) return {};
    // Y = m (P + P (S - P)^-1 P) m + r S r.
    Matrix y = p;
    gemm(n, n, n, 1.0, {half.data(), n}, {half.data(), n, true}, 1.0, y.data(), n);
    for (Index i = 0; i < n; ++i) {
      const Interval a = chain.slopes[k][static_cast<std::size_t>(i)];
      for (Index j = 0; j < n; ++j) {
        const Interval c = chain.slopes[k][static_cast<std::size_t>(j)];
        y[static_cast<std::size_t>(i * n + j)] *= 0.25 * (a.lo + a.hi) * (c.lo + c.hi);
      }
      y[static_cast<std::size_t>(i * (n + 1))] +=
          0.25 * (a.hi - a.lo) * (a.hi - a.lo) * scales[k][static_cast<std::size_t>(i)];
    }
    p = sandwich(chain.layers[k + 1], y);
  }
  return {largest_eigenvalue(p, chain.outputs()), std::move(scales)};
}

// T = rho / (2 S r^2): the scales are those of |x_0| = 1.
LipsdpResult as_multipliers(const Chain& chain, const Proof& value, double dual) {
  LipsdpResult result{{}, value.rho, dual};
  for (std::size_t k = 0; k < value.scales.size(); ++k) {
    std::vector<double> t;
    for (std::size_t i = 0; i < value.scales[k].size(); ++i) {
      const Interval slope = chain.slopes[k][i];
      const double r = 0.5 * (slope.hi - slope.lo);
      t.push_back(value.rho / (2 * value.scales[k][i] * r * r));
    }
    result.multipliers.push_back(std::move(t));
  }
  return result;
}

}  // namespace

LipsdpResult LipsdpResult::raised(double slack) const {
  LipsdpResult result = *this;
  result.rho *= 1 + slack;
  for (auto& layer : result.multipliers) {
    for (double& t : layer) t *= 1 + slack;
  }
  return result;
}

void solve_lipsdp(const Chain& chain, double gap, const std::function<bool()>& stop,
                  const std::function<void(const LipsdpResult&)>& found) {
  constexpr int kMostSteps = 20000;
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const double depth = static_cast<double>(chain.slopes.size()) + 1;
  const auto most_rank =
      static_cast<Index>(std::ceil(std::sqrt(2.0 * (static_cast<double>(chain.size()) + 1))));
  LipsdpDual dual(chain, std::min<Index>(12, most_rank));
  // Where a check costs more than many steps, the first one waits until it can be the last.
  double cubes = 0;
  for (const ChainLayer& layer : chain.layers)
    cubes += std::pow(static_cast<double>(layer.rows), 3);
  const double first_patience = cubes > 1e8 ? 0.01 * gap : 1e-4;
  double best = HUGE_VAL, last_value = 0, last_gap = HUGE_VAL, patience = first_patience;
  double check_seconds = 0;
  auto checked = Clock::now();
  int steps = 0;
  for (int i = 0; i < kMostSteps && !stop(); ++i) {
    const double value = dual.step();
    const double progress = (value - last_value) / value;
    last_value = value;
    if (++steps < 15 || !(progress < patience) || since(checked) < check_seconds) continue;
    const auto start = Clock::now();
    double reached = HUGE_VAL;
    for (double widen = 0.3 * gap / depth; widen < 3 && !stop(); widen *= 4) {
      const Proof tried = value_of(chain, dual.scales(), widen);
      if (!(tried.rho < HUGE_VAL)) continue;
      reached = std::sqrt(tried.rho / value) - 1;
      if (tried.rho < best) {
        best = tried.rho;
        found(as_multipliers(chain, tried, value));
      }
      break;
    }
    check_seconds = 0.5 * since(start);
    checked = Clock::now();
    steps = 0;
    if (reached <= gap) return;
    const bool stuck = reached > 0.8 * last_gap;
    last_gap = std::min(last_gap, reached);
    if (progress < 1e-9 && stuck) {
      if (dual.rank() >= most_rank) return;
      dual.grow(std::min(most_rank, dual.rank() + dual.rank() / 2));
      last_value = 0;
      patience = first_patience;
      continue;
    }
    patience = std::max(patience * 0.1, 1e-11);
  }
}

}  // namespace lipscope

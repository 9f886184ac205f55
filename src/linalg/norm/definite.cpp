// SPDX-License-Identifier: Apache-2.0
#include "linalg/norm/definite.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "base/check.h"
#include "base/rounding_sums.h"
#include "linalg/tensor/blas.h"
#include "linalg/tensor/cholesky.h"
#include "linalg/tensor/lapack.h"

namespace lipscope {
namespace {

std::vector<double> pseudo_random(Index n) {
  std::vector<double> x(static_cast<std::size_t>(n));
  std::uint64_t state = 0x9e3779b97f4a7c15;
  for (double& value : x) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    value = static_cast<double>(state >> 11) * 0x1p-52 - 1;
  }
  return x;
}

// Scales x to Euclidean length 1 and returns its former length.
double normalise(double* x, Index n) {
  const double length = cblas_dnrm2(static_cast<int>(n), x, 1);
  if (length > 0) cblas_dscal(static_cast<int>(n), 1 / length, x, 1);
  return length;
}

// How far a matrix with a Cholesky factor can be from being definite [norms-5]; 2 n + 16 leaves
// room over the n + 4 roundings proved there.
double factor_error_up(Index n, double trace) {
  const double gamma = gamma_up(static_cast<std::size_t>(2 * n + 16));
  if (!(gamma < 0.5)) return kInf;
  const double order = static_cast<double>(n);
  const double underflow = mul_up(order, mul_up(add_up(order + 1, trace), 0x1p-1070));
  return add_up(mul_up(div_up(gamma, sub_down(1, gamma)), trace), underflow);
}

struct TopOfTridiagonal {
  double value, error;         // error: estimated, relative
  std::vector<double> vector;  // coordinates in the Lanczos basis
};
TopOfTridiagonal top_of_tridiagonal(std::vector<double> d, std::vector<double> e, double last) {
  const int n = static_cast<int>(d.size());
  std::vector<double> z(d.size() * d.size()), work(2 * d.size() + 2);
  int info = 0;
  dstev_("V", &n, d.data(), e.data(), z.data(), &n, work.data(), &info, 1);
  if (info != 0) return {0, kInf, {}};
  const auto column = z.end() - n;
  const double top = d.back(), residual = std::fabs(last * z.back());
  const double gap = n > 1 ? top - d[d.size() - 2] : top;
  const double error = gap > residual ? residual * residual / gap : residual;
  return {top, top > 0 ? error / top : 0, {column, z.end()}};
}

}  // namespace

double definite_deficit_up(Index n, double* matrix) {
  if (n == 0) return 0;
  LIPSCOPE_CHECK(n <= std::numeric_limits<int>::max());
  if (!lower_finite(n, matrix)) return kInf;
  double trace = 0;
  for (Index i = 0; i < n; ++i) trace = add_up(trace, matrix[i * (n + 1)]);
  if (!cholesky(n, matrix, n) || !lower_finite(n, matrix)) return kInf;
  for (Index i = 0; i < n; ++i) {
    if (!(matrix[i * (n + 1)] > 0)) return kInf;
  }
  return factor_error_up(n, trace);
}

Gram::Gram(Index n)
    : n_(n), entries_(std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(n * n))) {}

void Gram::finish(Index roundings) {
  const double gamma = gamma_up(static_cast<std::size_t>(roundings));
  // Products below the normal range: n * roundings * 2^-1074 in the 2-norm and in the trace.
  const double underflow =
      mul_up(mul_up(static_cast<double>(n_), static_cast<double>(roundings)), 0x1p-1074);
  diagonal_.resize(static_cast<std::size_t>(n_));
  double trace = underflow;
  for (Index i = 0; i < n_; ++i) {
    diagonal_[i] = entries_[i * (n_ + 1)];
    trace = add_up(trace, diagonal_[i]);
  }
  trace_up_ = gamma < 0.5 ? div_up(trace, sub_down(1, gamma)) : kInf;
  error_up_ = add_up(mul_up(gamma, trace_up_), underflow);
  if (!(error_up_ >= 0)) trace_up_ = error_up_ = kInf;  // NaN entries, or gamma infinite
}

void Gram::multiply(const double* x, double* y) const { symv(n_, entries_.get(), x, y); }

double Gram::least_slack() const {
  const double n = static_cast<double>(n_);
  return 8 * kUnitRoundoff * n * (n + 8);
}

double Gram::try_shift(double shift) {
  double* a = entries_.get();
  for (Index i = 0; i < n_; ++i) {
    if (!(diagonal_[i] < shift)) return kInf;
  }
  copy_upper_to_lower(n_, a, -1);
  for (Index i = 0; i < n_; ++i) a[i * (n_ + 1)] = sub_down(shift, diagonal_[i]);
  const double deficit = definite_deficit_up(n_, a);
  for (Index i = 0; i < n_; ++i) a[i * (n_ + 1)] = diagonal_[i];
  return add_up(add_up(shift, deficit), error_up_);
}

double Gram::top_up(double guess, double slack, int attempts) {
  if (n_ == 0) return 0;
  if (!std::isfinite(guess) || !(guess > 0) || !std::isfinite(error_up_)) return kInf;
  for (int i = 0; i < attempts; ++i, slack *= 8) {
    const double bound = try_shift(guess * (1 + slack));
    if (bound < kInf) return bound;
  }
  return kInf;
}

double Gram::doubt(double top) const {
  const double order = static_cast<double>(n_);
  return add_up(factor_error_up(n_, mul_up(order, top)), error_up_);
}

bool Gram::proves(double top) {
  if (n_ == 0) return top >= 0;
  if (!std::isfinite(top) || !std::isfinite(error_up_)) return false;
  const double shift = sub_down(top, mul_up(2, doubt(top)));
  return shift > 0 && try_shift(shift) <= top;
}

double Gram::portable(double top) const {
  return n_ == 0 || !(top < kInf) ? top : add_up(top, mul_up(8, doubt(top)));
}

Ritz lanczos(Index n, const std::function<void(const double*, double*)>& multiply,
             std::vector<double> start, double tolerance, int max_steps) {
  if (n == 0) return {};
  if (start.empty()) start = pseudo_random(n);
  if (!(normalise(start.data(), n) > 0)) return {};
  const int steps = static_cast<int>(std::min<Index>(n, std::max(max_steps, 1)));
  const int size = static_cast<int>(n);
  std::vector<double> basis = std::move(start), d, e, w(static_cast<std::size_t>(n)), h;
  TopOfTridiagonal top{0, kInf, {}};
  for (int j = 0; j < steps; ++j) {
    multiply(basis.data() + j * n, w.data());
    d.push_back(cblas_ddot(size, basis.data() + j * n, 1, w.data(), 1));
    h.resize(d.size());
    for (int pass = 0; pass < 2; ++pass) {
      gemv(j + 1, n, 1.0, {basis.data(), n}, w.data(), 1, 0.0, h.data(), 1);
      gemv(n, j + 1, -1.0, {basis.data(), n, true}, h.data(), 1, 1.0, w.data(), 1);
    }
    const double beta = normalise(w.data(), n);
    const bool stuck = !(beta > 1e-15 * std::fabs(d.front()));
    if (stuck || j % 8 == 7 || j + 1 == steps || j < 2) {
      top = top_of_tridiagonal(d, e, beta);
      // One small residual can be luck of the start; a few steps more cost little.
      if (stuck || j + 1 == steps || (j >= 7 && top.error < tolerance)) break;
    }
    basis.insert(basis.end(), w.begin(), w.end());
    e.push_back(beta);
  }
  if (top.vector.empty()) return {};
  std::vector<double> vector(static_cast<std::size_t>(n));
  gemv(n, std::ssize(d), 1.0, {basis.data(), n, true}, top.vector.data(), 1, 0.0, vector.data(), 1);
  return {top.value, std::move(vector)};
}

}  // namespace lipscope

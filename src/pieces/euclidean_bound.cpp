// SPDX-License-Identifier: Apache-2.0
#include "pieces/euclidean_bound.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/checkpoint.h"
#include "base/rounding.h"
#include "linalg/norm/definite.h"
#include "linalg/tensor/blas.h"
#include "linalg/tensor/cholesky.h"
#include "linalg/tensor/lapack.h"
#include "net/small.h"

namespace lipscope {
namespace {

// Copies the lower triangle to the upper one.
void mirror(std::vector<double>& a, Index n) {
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < i; ++j) a[to_size(j * n + i)] = a[to_size(i * n + j)];
  }
}

// Products of two are no smaller than normal numbers.
constexpr double kSmallestSlope = 0x1p-500;

double gamma_of(Index n) { return gamma_up(to_size(n)); }

double frobenius_up(const std::vector<double>& a) { return norm2_up(a); }

// A power of two near 1 / sqrt(x).
double inverse_root_scale(double x) {
  int exponent = 0;
  (void)std::frexp(x, &exponent);
  return std::ldexp(1.0, -exponent / 2);
}

}  // namespace

EuclideanBound::EuclideanBound(const LayeredNet& net, std::optional<Index> row)
    : net_(net), row_(row) {
  const DenseLayer& layer = net.layers[0];
  const bool one = net.layers.size() == 1 && row;
  const Index first = one ? *row : 0, rows = one ? 1 : layer.out, n = layer.in;
  start_.resize(to_size(rows * rows));
  const double* w = layer.row(first);
  gemm(rows, rows, n, 1.0, {w, n}, {w, n, true}, 0.0, start_.data(), rows);
  std::vector<double> size, rough;
  for (Index i = first; i < first + rows; ++i) {
    const double length = norm2_up(std::span(layer.row(i), to_size(n)));
    rough.push_back(layer.radius.empty() ? 0
                                         : norm2_up(std::span(layer.radius_row(i), to_size(n))));
    size.push_back(add_up(length, rough.back()));
  }
  outweigh_errors(start_, size, rough, gamma_of(n + 8));
}

// |error_ij| <= g s_i s_j implies that adding n g s_i^2 to the diagonal outweighs it [pieces-2].
// `rough`: the part of each s_i that radii of weights have.
void EuclideanBound::outweigh_errors(Matrix& matrix, std::vector<double>& size,
                                     const std::vector<double>& rough, double rounding) {
  const auto n = std::ssize(size);
  double uncertainty = 0;
  for (std::size_t i = 0; i < size.size(); ++i) {
    size[i] = add_up(size[i], kMinSubnormal);
    if (rough[i] > 0) uncertainty = std::max(uncertainty, div_up(rough[i], size[i]));
  }
  const double g = add_up(rounding, mul_up(uncertainty, add_up(2, uncertainty)));
  const double share = mul_up(static_cast<double>(n), g);
  for (std::size_t i = 0; i < size.size(); ++i) {
    double& entry = matrix[i * to_size(n + 1)];
    entry = add_up(std::max(entry, 0.0), mul_up(share, mul_up(size[i], size[i])));
    entry = add_up(entry, 0x1p-1000);  // more than underflow can take
  }
  mirror(matrix, n);
}

void EuclideanBound::through_weights(const DenseLayer& layer, Index first, Index rows) {
  const Index p = layer.in;
  product_.resize(to_size(rows * p));
  next_.resize(to_size(rows * rows));
  const double* w = layer.row(first);
  gemm(rows, p, p, 1.0, {w, p}, {cov_.data(), p}, 0.0, product_.data(), p);
  gemm(rows, rows, p, 1.0, {product_.data(), p}, {w, p, true}, 0.0, next_.data(), rows);
  std::vector<double> root(to_size(p)), size(to_size(rows)), rough(to_size(rows), 0);
  for (Index j = 0; j < p; ++j) root[to_size(j)] = sqrt_up(cov_[to_size(j * (p + 1))]);
  const double sums = 1 + gamma_of(2 * p + 8);
  for (Index i = 0; i < rows; ++i) {
    const double* row = layer.row(first + i);
    const double* radius = layer.radius_row(first + i);
    double sum = 0;
    for (Index j = 0; j < p; ++j) {
      sum += std::fabs(row[j]) * root[to_size(j)];
      if (radius != nullptr) rough[to_size(i)] += radius[j] * root[to_size(j)];
    }
    rough[to_size(i)] = mul_up(rough[to_size(i)], sums);
    size[to_size(i)] = add_up(mul_up(sum, sums), rough[to_size(i)]);
  }
  outweigh_errors(next_, size, rough, gamma_of(2 * p + 8));
  std::swap(cov_, next_);
}

// Of K = S - P for the unstable units, scaled to a diagonal near 1: its factor L, X near 1 / L, and
// raised_ >= S with raised_ - P >= L L'.
bool EuclideanBound::invert_slack(std::vector<double> multipliers) {
  const auto q = std::ssize(open_);
  const auto n = std::ssize(multipliers);
  scale_.resize(open_.size());
  slack_.resize(open_.size());
  raised_.resize(open_.size());
  factor_.assign(to_size(q * q), 0);
  for (std::size_t i = 0; i < open_.size(); ++i) {
    double& s = multipliers[open_[i]];
    if (s == 0) {  // a dominant diagonal
      const double* row = &cov_[open_[i] * to_size(n)];
      for (Index j = 0; j < n; ++j) s += 2 * std::fabs(row[j]);
    }
    if (!(s > 0) || !(s < kMaxDouble)) return false;
    scale_[i] = inverse_root_scale(s);
  }
  for (std::size_t i = 0; i < open_.size(); ++i) {
    const double* row = &cov_[open_[i] * to_size(n)];
    double* to = &factor_[i * to_size(q)];
    for (std::size_t j = 0; j < i; ++j) to[j] = -row[open_[j]] * scale_[i] * scale_[j];
    slack_[i] = (multipliers[open_[i]] - row[open_[i]]) * scale_[i] * scale_[i];
    if (!(slack_[i] > 0)) return false;
    to[i] = slack_[i];
  }
  if (!cholesky(q, factor_.data(), q)) return false;
  const double c = mul_up(static_cast<double>(q + 1), gamma_of(2 * q + 16));
  for (std::size_t i = 0; i < open_.size(); ++i) {
    const double raise = mul_up(c, slack_[i]) / (scale_[i] * scale_[i]);
    raised_[i] = add_up(multipliers[open_[i]], mul_up(raise, 1 + 0x1p-50));
    if (!(factor_[i * to_size(q + 1)] > 0)) return false;
  }
  inverse_ = factor_;
  const int size = static_cast<int>(q);
  int info = 0;
  charge(0.5 * kBlasOperation * static_cast<double>(q) * static_cast<double>(q * q));
  dtrtri_("U", "N", &size, inverse_.data(), &size, &info, 1, 1);
  if (info != 0) return false;
  square_.resize(to_size(q * q));
  gemm(q, q, q, 1.0, {inverse_.data(), q}, {factor_.data(), q}, 0.0, square_.data(), q);
  for (Index i = 0; i < q; ++i) square_[to_size(i * (q + 1))] -= 1;
  inverse_norm_ = frobenius_up(inverse_);
  const double off =
      add_up(mul_up(frobenius_up(square_), 1 + 0x1p-40),
             mul_up(gamma_of(2 * q + 8), mul_up(inverse_norm_, frobenius_up(factor_))));
  if (!(off < 0.5)) return false;
  const double loss = div_up(1, sub_down(1, off));
  growth_ = mul_up(loss, loss);
  return true;
}

bool EuclideanBound::through_units(const std::vector<Interval>& slopes,
                                   const std::vector<double>& multipliers) {
  const auto n = std::ssize(slopes);
  std::vector<double> middle(slopes.size()), reach(slopes.size());
  open_.clear();
  for (std::size_t i = 0; i < slopes.size(); ++i) {
    middle[i] = 0.5 * (slopes[i].lo + slopes[i].hi);
    reach[i] = std::max(sub_up(slopes[i].hi, middle[i]), sub_up(middle[i], slopes[i].lo));
    if (middle[i] != 0 && std::fabs(middle[i]) < kSmallestSlope) return false;
    if (reach[i] > 0) open_.push_back(i);
  }
  const auto q = std::ssize(open_);
  if (q > 0) {
    if (!invert_slack(multipliers)) return false;
    turned_.resize(to_size(q * n));
    next_.resize(to_size(q * n));
    for (std::size_t i = 0; i < open_.size(); ++i) {
      for (std::size_t j = 0; j < to_size(n); ++j)
        next_[i * to_size(n) + j] = scale_[i] * cov_[open_[i] * to_size(n) + j];
    }
    gemm(q, n, q, 1.0, {inverse_.data(), q}, {next_.data(), n}, 0.0, turned_.data(), n);
    square_.resize(to_size(n * n));
    gemm(n, n, q, 1.0, {turned_.data(), n, true}, {turned_.data(), n}, 0.0, square_.data(), n);
  }
  const double rounding = mul_up(static_cast<double>(n), 8 * kUnitRoundoff);
  const double squares = mul_up(static_cast<double>(n), gamma_of(4 * q + 8));
  // More than underflow can take, in all of a row [pieces-2].
  const double lost = mul_up(mul_up(static_cast<double>(n * (q + 1)),
                                    q > 0 ? add_up(1, mul_up(inverse_norm_, inverse_norm_)) : 1),
                             0x1p-1000);
  for (std::size_t i = 0; i < slopes.size(); ++i) {
    double* row = &cov_[i * to_size(n)];
    for (std::size_t j = 0; j < i; ++j) {
      const double extra = q > 0 ? growth_ * square_[i * to_size(n) + j] : 0;
      row[j] = middle[i] * middle[j] * (row[j] + extra);
    }
    double own = row[i], error = 0;
    if (q > 0) {
      double column = 0;
      for (std::size_t k = 0; k < open_.size(); ++k)
        column += next_[k * to_size(n) + i] * next_[k * to_size(n) + i];
      column = mul_up(column, 1 + gamma_of(q + 2));
      error = mul_up(column, mul_up(inverse_norm_, inverse_norm_));
      own = add_up(own, mul_up(growth_, add_up(square_[i * to_size(n) + i],
                                               mul_up(gamma_of(4 * q + 8), error))));
      error = mul_up(growth_, mul_up(squares, error));
    }
    const double m2 = mul_up(middle[i], middle[i]);
    own = mul_up(m2, own);
    row[i] = add_up(own, add_up(mul_up(rounding, own), mul_up(m2, error)));
    row[i] = add_up(row[i], mul_up(lost, add_up(1, m2)));
  }
  for (std::size_t i = 0; i < open_.size(); ++i) {
    double& entry = cov_[open_[i] * to_size(n + 1)];
    const double r = reach[open_[i]];
    entry = add_up(entry, mul_up(mul_up(r, r), raised_[i]));
  }
  mirror(cov_, n);
  return true;
}

double EuclideanBound::top_eigenvalue_up(Index n) const {
  if (n == 1) return cov_[0];
  const Ritz guess = lanczos(
      n,
      [&](const double* x, double* y) {
        gemv(n, n, 1.0, {cov_.data(), n}, x, 1, 0.0, y, 1);
      },
      {}, 1e-13, 60);
  Matrix shifted(cov_.size());
  double slack = 1e-12;
  for (int attempt = 0; attempt < 12; ++attempt, slack *= 10) {
    const double top = guess.value * (1 + slack);
    for (std::size_t i = 0; i < cov_.size(); ++i) shifted[i] = -cov_[i];
    for (Index i = 0; i < n; ++i)
      shifted[to_size(i * (n + 1))] = sub_down(top, cov_[to_size(i * (n + 1))]);
    const double deficit = definite_deficit_up(n, shifted.data());
    if (std::isfinite(deficit)) return add_up(top, deficit);
  }
  double trace = 0;
  for (Index i = 0; i < n; ++i) trace = add_up(trace, cov_[to_size(i * (n + 1))]);
  return trace;
}

std::vector<std::vector<double>> EuclideanBound::before_units(const Slopes& slopes,
                                                              const Multipliers& multipliers) {
  std::vector<std::vector<double>> constants;
  for (const auto& layer : slopes) constants.emplace_back(layer.size(), kInf);
  cov_ = start_;
  for (std::size_t k = 0; k < slopes.size(); ++k) {
    const std::size_t n = slopes[k].size();
    for (std::size_t i = 0; i < n; ++i) {
      const double square = cov_[i * (n + 1)];
      if (std::isfinite(square)) constants[k][i] = sqrt_up(std::max(square, 0.0));
    }
    if (k + 1 == slopes.size() || !through_units(slopes[k], multipliers[k])) break;
    through_weights(net_.layers[k + 1], 0, net_.layers[k + 1].out);
  }
  return constants;
}

double EuclideanBound::upper_bound(const Slopes& slopes, const Multipliers& multipliers) {
  cov_ = start_;
  for (const DenseLayer& layer : net_.layers)  // besides products: factors and sums
    charge(3 * static_cast<double>(layer.out) * static_cast<double>(layer.out));
  for (std::size_t k = 0; k + 1 < net_.layers.size(); ++k) {
    if (!through_units(slopes[k], multipliers[k])) return kInf;
    const DenseLayer& next = net_.layers[k + 1];
    const bool one = row_ && k + 2 == net_.layers.size();
    through_weights(next, one ? *row_ : 0, one ? 1 : next.out);
  }
  const double square = top_eigenvalue_up(row_ ? 1 : net_.outputs());
  return std::isfinite(square) ? sqrt_up(std::max(square, 0.0)) : kInf;
}

}  // namespace lipscope

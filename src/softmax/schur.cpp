// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "softmax/interpolation.h"
#include "softmax/norm_parts.h"

namespace lipscope::softmax_parts {
namespace {

constexpr int kSchurIterations = 10;
constexpr double kTiny = 1e-150;

// y = B x with B = total^2 |M|, the matrix of absolute values; all positive.
void apply_schur(const SoftmaxRow& row, double total, std::span<const double> x,
                 std::span<double> y) {
  const std::span<const double> w = row.weights();
  double tail = 0;
  for (std::size_t i = 1; i < w.size(); ++i) tail += w[i] * x[i];
  const double all = tail + w[0] * x[0];
  y[0] = w[0] * (row.rest().hi * x[0] + tail);
  for (std::size_t i = 1; i < w.size(); ++i) y[i] = w[i] * ((total - 2 * w[i]) * x[i] + all);
}

// The same rounded up; total - 2 w_i is at least 0 for every entry but the largest.
void apply_up(const SoftmaxRow& row, std::span<const double> x, std::span<double> y) {
  const std::span<const double> w = row.weights();
  const double total = row.total().hi;
  double tail = 0;
  for (std::size_t i = 1; i < w.size(); ++i) tail = add_up(tail, mul_up(w[i], x[i]));
  const double all = add_up(tail, mul_up(w[0], x[0]));
  y[0] = mul_up(w[0], add_up(mul_up(row.rest().hi, x[0]), tail));
  for (std::size_t i = 1; i < w.size(); ++i) {
    const double own = mul_up(std::max(0.0, sub_up(total, 2 * w[i])), x[i]);
    y[i] = mul_up(w[i], add_up(own, all));
  }
}

}  // namespace

double schur_norm_up(const SoftmaxRow& row, double p) {
  const std::size_t n = row.weights().size();
  if (n < 2) return 0;
  std::vector<double> x(n, 1.0), y(n), z(n);
  const double total = row.total().hi, exponent = p - 1;
  for (int k = 0; k < kSchurIterations; ++k) {
    apply_schur(row, total, x, y);
    const double size = *std::max_element(y.begin(), y.end());
    for (double& v : y) v = std::pow(v / size, exponent);
    apply_schur(row, total, y, z);
    const double largest = *std::max_element(z.begin(), z.end());
    if (!(size > 0) || !(largest > 0)) return kInf;
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = std::clamp(std::pow(z[i] / largest, 1 / exponent), kTiny, 1.0);
    }
  }
  // Any positive x gives a bound. B is scaled by a power of two so that B x is about 1. Directed
  // exponents: a power grows with the exponent exactly if its base is at least 1.
  const double up = sub_up(p, 1), down = sub_down(p, 1);
  apply_up(row, x, y);
  const double size = *std::max_element(y.begin(), y.end());
  if (!(size > kTiny * kTiny) || !std::isfinite(size)) return kInf;
  const double scale = std::ldexp(1.0, -std::ilogb(size));
  for (double& v : y) {
    v = mul_up(v, scale);
    v = pow_up(v, v >= 1 ? up : down);
  }
  apply_up(row, y, z);
  double largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    // x <= 1, so the larger exponent gives the smaller power.
    largest = max_nan(largest, div_up(mul_up(z[i], scale), pow_down(x[i], up)));
  }
  const Interval root = inverse(Norm(p));
  const double norm = div_up(pow_up(largest, largest >= 1 ? root.hi : root.lo), scale);
  const double result = div_up(norm, mul_down(row.total().lo, row.total().lo));
  return std::isfinite(result) ? result : kInf;
}

}  // namespace lipscope::softmax_parts

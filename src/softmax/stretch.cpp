// SPDX-License-Identifier: Apache-2.0
// Vectors that the Jacobian of softmax stretches much, and a proved value of how much.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "softmax/norm.h"
#include "softmax/norm_parts.h"
#include "softmax/secular.h"

namespace lipscope {
namespace softmax_parts {
namespace {

constexpr int kStretchIterations = 60;
constexpr double kProgress = 1e-12;

using Vector = std::vector<double>;

// y = M v, from differences to the entry of the largest weight.
void apply_jacobian(const SoftmaxRow& row, const Vector& v, Vector& y) {
  const std::span<const double> w = row.weights();
  const double total = midpoint(row.total());
  double mean = 0;
  for (std::size_t i = 1; i < v.size(); ++i) mean += w[i] * (v[i] - v[0]);
  mean /= total;
  for (std::size_t i = 0; i < v.size(); ++i) y[i] = w[i] * ((v[i] - v[0]) - mean) / total;
}

double largest(const Vector& v) {
  double top = 0;
  for (const double x : v) top = std::max(top, std::fabs(x));
  return top;
}

double norm_of(const Vector& v, double p) {
  const double top = largest(v);
  if (top == 0 || p == kInf) return top;
  double sum = 0;
  for (const double x : v) sum += std::pow(std::fabs(x) / top, p);
  return top * std::pow(sum, 1 / p);
}

// The vector of unit largest entry along which |.|_p grows fastest at v.
void gradient(Vector& v, double p) {
  const double top = largest(v);
  if (top == 0) return;
  if (p == kInf) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      if (std::fabs(v[i]) > std::fabs(v[at])) at = i;
    }
    const double sign = v[at] < 0 ? -1 : 1;
    std::fill(v.begin(), v.end(), 0.0);
    v[at] = sign;
    return;
  }
  for (double& x : v) {
    const double size = p == 1   ? (x == 0 ? 0 : 1)
                        : p == 2 ? std::fabs(x) / top
                                 : std::pow(std::fabs(x) / top, p - 1);
    x = std::copysign(size, x);
  }
}

struct Found {
  double quotient = 0;
  Vector vector;
};

void climb(const SoftmaxRow& row, const NormPair& norms, Vector v, Found& best) {
  const double p = norms.in.p(), q = norms.out.p(), dual = norms.in.dual().p();
  Vector y(v.size()), z(v.size());
  double before = 0;
  for (int k = 0; k < kStretchIterations; ++k) {
    apply_jacobian(row, v, y);
    const double size = norm_of(v, p), quotient = size > 0 ? norm_of(y, q) / size : 0;
    if (quotient > best.quotient) best = {quotient, v};
    if (!(quotient > before * (1 + kProgress))) return;
    before = quotient;
    gradient(y, q);
    apply_jacobian(row, y, z);
    v = z;
    gradient(v, dual);
  }
}

}  // namespace

std::vector<double> top_eigenvector(const SoftmaxRow& row) {
  const std::span<const double> w = row.weights();
  Vector v(w.size());
  if (w.size() < 2) return v;
  const double nu = midpoint(top_eigenvalue(row.top(), row.tail()) * row.total());
  for (std::size_t i = 1; i < w.size(); ++i) {
    if (nu <= w[i]) {  // two equal weights
      v[0] = 1, v[i] = -1;
      return v;
    }
  }
  if (nu >= w[0]) {
    v[0] = 1, v[1] = -1;
    return v;
  }
  for (std::size_t i = 0; i < w.size(); ++i) v[i] = w[i] / (w[i] - nu);
  const double top = largest(v);
  for (double& x : v) x /= top;
  return v;
}

std::vector<double> stretched_vector(const SoftmaxRow& row, const NormPair& norms) {
  const std::size_t n = row.weights().size();
  Found best{0, Vector(n)};
  if (n < 2) return best.vector;
  best.vector[0] = 1;
  climb(row, norms, top_eigenvector(row), best);
  Vector v(n);
  v[0] = 1;
  climb(row, norms, v, best);
  std::fill(v.begin() + 1, v.end(), -1.0);
  climb(row, norms, v, best);
  // The largest few against the others; sets of a tenth matter for flat rows [softmax-8].
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return row.weights()[a] > row.weights()[b]; });
  for (const std::size_t count : {std::size_t{2}, n / 12 + 1, n / 4 + 1, n / 2}) {
    for (std::size_t i = 0; i < n; ++i) v[order[i]] = i < count ? 1 : -0.2;
    climb(row, norms, v, best);
  }
  std::uint64_t state = 0x9e3779b97f4a7c15;
  for (int k = 0; k < 2; ++k) {
    for (double& x : v) {
      state = state * 6364136223846793005 + 1442695040888963407;
      x = static_cast<double>(state >> 11) * 0x1p-52 - 1;
    }
    climb(row, norms, v, best);
  }
  return best.vector;
}

}  // namespace softmax_parts

double softmax_quotient_down(const SoftmaxRow& row, std::span<const double> v,
                             const NormPair& norms) {
  const std::span<const double> w = row.weights();
  const std::size_t n = w.size();
  const double size = pnorm_up(v, norms.in.p());
  if (n < 2 || !(size > 0) || !std::isfinite(size)) return 0;
  // d_i = v_i - v_0; the mean of d under s, with every weight off by the factor 1 +- e at most.
  const double half = row.spread();  // more than (1 + e) / (1 - e)
  Interval mean = point(0);
  for (std::size_t i = 1; i < n; ++i) {
    const Interval d = point(v[i]) - point(v[0]);
    const Interval term = point(w[i]) * d;
    mean += term;
  }
  double spread_sum = 0;  // of |w d|, for the error of the weights
  for (std::size_t i = 1; i < n; ++i)
    spread_sum = add_up(spread_sum, mul_up(w[i], magnitude(point(v[i]) - point(v[0]))));
  const double slack = mul_up(spread_sum, sub_up(half, 1));
  // What is left out counts with v = 0, hence with d = -v_0.
  const double outside = mul_up(row.lost(), std::fabs(v[0]));
  mean = {sub_down(sub_down(mean.lo, slack), outside), add_up(add_up(mean.hi, slack), outside)};
  const Interval total{div_down(row.total().lo, half),
                       add_up(mul_up(row.total().hi, half), row.lost())};
  mean = mean / total;
  std::vector<double> y(n);
  for (std::size_t i = 0; i < n; ++i) {
    const Interval d = i == 0 ? -mean : (point(v[i]) - point(v[0])) - mean;
    const double share = div_down(div_down(w[i], half), total.hi);
    y[i] = mul_down(share, mignitude(d));
  }
  const double quotient = div_down(pnorm_down(y, norms.out.p()), size);
  return std::max(0.0, mul_down(std::fabs(row.lambda()), quotient));
}

}  // namespace lipscope

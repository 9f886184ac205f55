// SPDX-License-Identifier: Apache-2.0
#include "softmax/calculus.h"

#include <algorithm>
#include <cmath>

#include "softmax/interpolation.h"

namespace lipscope {
namespace {

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// exp(x) over its sum.
std::vector<double> normalised(std::vector<double> x) {
  if (x.empty()) return x;
  const double top = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& v : x) {
    v = std::exp(v - top);
    sum += v;
  }
  for (double& v : x) v /= sum;
  return x;
}

}  // namespace

// The mean is subtracted before the product: s_i v_i - s_i (s.v) would cancel.
void softmax_jvp(std::span<const double> s, std::span<const double> v, double lambda,
                 std::span<double> out) {
  const double mean = dot(s, v);
  for (std::size_t i = 0; i < s.size(); ++i) out[i] = lambda * s[i] * (v[i] - mean);
}

std::vector<double> softmax_jacobian(std::span<const double> s, double lambda) {
  const std::size_t n = s.size();
  std::vector<double> jacobian(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    double others = 0;
    for (std::size_t j = 0; j < n; ++j) {
      if (j == i) continue;
      others += s[j];
      jacobian[i * n + j] = -lambda * (s[i] * s[j]);
    }
    jacobian[i * n + i] = lambda * s[i] * others;
  }
  return jacobian;
}

std::vector<double> softmax_inverse(std::span<const double> s, double lambda) {
  std::vector<double> x(s.size());
  const double top = s.empty() ? 1 : *std::max_element(s.begin(), s.end());
  for (std::size_t i = 0; i < s.size(); ++i) x[i] = std::log(s[i] / top) / lambda;
  return x;
}

std::vector<double> softmax_power(std::span<const double> s, double t) {
  std::vector<double> x(s.size());
  for (std::size_t i = 0; i < s.size(); ++i) x[i] = t == 0 ? 0 : t * std::log(s[i]);
  return normalised(std::move(x));
}

std::vector<double> softmax_blend(std::span<const std::vector<double>> s,
                                  std::span<const double> a) {
  std::vector<double> x(s.empty() ? 0 : s[0].size());
  for (std::size_t k = 0; k < s.size(); ++k) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += a[k] == 0 ? 0 : a[k] * std::log(s[k][i]);
  }
  return normalised(std::move(x));
}

double softmax_logistic(double difference, double lambda) {
  const double e = std::exp(-std::fabs(lambda * difference));
  return lambda * difference >= 0 ? 1 / (1 + e) : e / (1 + e);
}

std::vector<double> softmax_limit(std::span<const double> x, LambdaLimit limit) {
  std::vector<double> s(x.size());
  if (x.empty()) return s;
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  const double chosen = limit == LambdaLimit::kPlusInfinity ? *high : *low;
  double count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    s[i] = limit == LambdaLimit::kZero || x[i] == chosen ? 1 : 0;
    count += s[i];
  }
  for (double& v : s) v /= count;
  return s;
}

void log_softmax_jvp(std::span<const double> s, std::span<const double> v, double lambda,
                     std::span<double> out) {
  const double mean = dot(s, v);
  for (std::size_t i = 0; i < s.size(); ++i) out[i] = lambda * (v[i] - mean);
}

void log_softmax_vjp(std::span<const double> s, std::span<const double> g, double lambda,
                     std::span<double> out) {
  double sum = 0;
  for (const double x : g) sum += x;
  for (std::size_t i = 0; i < s.size(); ++i) out[i] = lambda * (g[i] - sum * s[i]);
}

Interval log_softmax_global_norm(Norm p, Index n, double lambda) {
  if (n < 2) return point(0);
  const Interval size = point(std::fabs(lambda)), others = point(static_cast<double>(n - 1));
  if (p.p() == 1) return size * others;
  if (p.p() == 2) return size * sqrt(others + 1);
  if (p.p() == kInf) return 2 * size;
  const Interval exponent = point(p.p()) - 1, dual = 1 - inverse(p);
  if (n == 2) return size * power_of_two(dual);
  // (1 + m^(1/e))^d with d = e/p is m^(1/p) (1 + m^(-1/e))^d, which cannot overflow.
  return size * pow(others, inverse(p)) * pow(1 + pow(others, -(1 / exponent)), dual);
}

Interval cross_entropy_global_norm(Norm p, Index n, double lambda) {
  if (n < 2) return point(0);
  return point(std::fabs(lambda)) * power_of_two(1 - inverse(p));
}

Interval softmax_cocoercivity(Norm p, double lambda) {
  return power_of_two(2 * inverse(p)) / point(lambda);
}

Interval softmax_nonexpansive_lambda(const NormPair& norms) {
  return power_of_two(1 - inverse_difference(norms));
}

}  // namespace lipscope

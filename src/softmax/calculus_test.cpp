// SPDX-License-Identifier: Apache-2.0
#include "softmax/calculus.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "softmax/norm.h"

namespace lipscope {
namespace {

using Vector = std::vector<double>;

Vector plain_softmax(const Vector& x, double lambda) {
  const SoftmaxRow row(x, lambda);
  Vector s(x.size());
  for (std::size_t k = 0; k < row.weights().size(); ++k)
    s[static_cast<std::size_t>(row.places()[k])] = midpoint(row.probability(k));
  return s;
}
void expect_near(const Vector& a, const Vector& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << i;
}
double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

const Vector kX{0.3, -1.2, 2.0, 0.7}, kV{1, -2, 0.5, 3}, kG{0.2, 1, -1, 0.4};
constexpr double kLambda = 1.7;

TEST(SoftmaxCalculus, Derivatives) {
  const Vector s = plain_softmax(kX, kLambda), jacobian = softmax_jacobian(s, kLambda);
  Vector pushed(4), by_hand(4), far = kX;
  softmax_jvp(s, kV, kLambda, pushed);
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      by_hand[i] += jacobian[i * 4 + j] * kV[j];
      EXPECT_EQ(jacobian[i * 4 + j], jacobian[j * 4 + i]);
    }
  }
  expect_near(pushed, by_hand, 1e-15);
  constexpr double kStep = 1e-6;
  Vector near = kX;
  for (std::size_t i = 0; i < 4; ++i) far[i] += kStep * kV[i], near[i] -= kStep * kV[i];
  const Vector up = plain_softmax(far, kLambda), down = plain_softmax(near, kLambda);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(pushed[i], (up[i] - down[i]) / (2 * kStep), 1e-9);
  // Constants change nothing, and nothing leaves the simplex.
  softmax_jvp(s, Vector(4, 5.0), kLambda, by_hand);
  expect_near(by_hand, Vector(4, 0.0), 1e-14);
  EXPECT_NEAR(pushed[0] + pushed[1] + pushed[2] + pushed[3], 0, 1e-15);
  // v' M v is a variance.
  Vector squares = kV;
  for (double& v : squares) v *= v;
  EXPECT_NEAR(dot(kV, pushed), kLambda * (dot(s, squares) - dot(s, kV) * dot(s, kV)), 1e-14);
}

TEST(SoftmaxCalculus, LogSoftmaxDerivatives) {
  const Vector s = plain_softmax(kX, kLambda);
  Vector pushed(4), pulled(4), far = kX, near = kX;
  log_softmax_jvp(s, kV, kLambda, pushed);
  log_softmax_vjp(s, kG, kLambda, pulled);
  EXPECT_NEAR(dot(pushed, kG), dot(kV, pulled), 1e-14);
  constexpr double kStep = 1e-6;
  for (std::size_t i = 0; i < 4; ++i) far[i] += kStep * kV[i], near[i] -= kStep * kV[i];
  const Vector up = plain_softmax(far, kLambda), down = plain_softmax(near, kLambda);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(pushed[i], (std::log(up[i]) - std::log(down[i])) / (2 * kStep), 1e-8);
}

TEST(SoftmaxCalculus, Algebra) {
  const Vector s = plain_softmax(kX, kLambda);
  for (const double lambda : {kLambda, -kLambda})
    expect_near(plain_softmax(softmax_inverse(s, lambda), lambda), s, 1e-15);
  Vector shifted = kX;
  for (double& x : shifted) x += 17;
  expect_near(plain_softmax(shifted, kLambda), s, 1e-14);
  expect_near(softmax_power(plain_softmax(kX, 1), kLambda), s, 1e-15);
  expect_near(softmax_power(plain_softmax(kX, 1), -2), plain_softmax(kX, -2), 1e-15);
  Vector mixed(4);
  for (std::size_t i = 0; i < 4; ++i) mixed[i] = 0.5 * kX[i] - 2 * kV[i];
  const std::vector<Vector> parts{plain_softmax(kX, 1), plain_softmax(kV, 1)};
  expect_near(softmax_blend(parts, Vector{0.5, -2}), plain_softmax(mixed, 1), 1e-15);
}

TEST(SoftmaxCalculus, TwoClasses) {
  for (const double d : {-800.0, -3.0, 0.0, 0.4, 50.0}) {
    EXPECT_NEAR(softmax_logistic(d, kLambda), plain_softmax({d, 0}, kLambda)[0], 1e-15);
    const double slope =
        (softmax_logistic(d + 1e-5, kLambda) - softmax_logistic(d - 1e-5, kLambda)) / 2e-5;
    EXPECT_LE(slope, kLambda / 4 * (1 + 1e-9));
    if (d == 0) {
      EXPECT_GE(slope, 0.99 * kLambda / 4);
    }
  }
}

TEST(SoftmaxCalculus, Limits) {
  const Vector x{2, -1, 2, 0, -1, -1};
  const Vector high = softmax_limit(x, LambdaLimit::kPlusInfinity);
  expect_near(high, {0.5, 0, 0.5, 0, 0, 0}, 0);
  expect_near(plain_softmax(x, 60), high, 1e-15);
  const Vector low = softmax_limit(x, LambdaLimit::kMinusInfinity);
  expect_near(low, {0, 1.0 / 3, 0, 0, 1.0 / 3, 1.0 / 3}, 1e-16);
  expect_near(plain_softmax(x, -60), low, 1e-15);
  const Vector flat = softmax_limit(x, LambdaLimit::kZero);
  expect_near(flat, Vector(6, 1.0 / 6), 1e-16);
  expect_near(plain_softmax(x, 1e-12), flat, 1e-11);
}

// Attained in the limit of a decided row: J = I - 1 e_1'.
TEST(SoftmaxCalculus, LogSoftmaxConstants) {
  for (const double p : {1.0, 1.2, 2.0, 3.0, 10.0, kInf}) {
    for (const Index n : {2, 3, 50}) {
      const Interval bound = log_softmax_global_norm(Norm(p), n, -kLambda);
      const auto size = static_cast<std::size_t>(n);
      Vector s(size), out(size);
      s[0] = 1;
      Vector v(size, p == 1 ? 0 : p == kInf ? -1 : -std::pow(n - 1, -1 / (p - 1)));
      v[0] = 1;
      log_softmax_jvp(s, v, -kLambda, out);
      const double quotient = pnorm_down(out, p) / pnorm_up(v, p);
      EXPECT_LE(quotient * (1 - 1e-14), bound.hi);
      EXPECT_GE(quotient, 0.9999999 * bound.lo) << p << " " << n;
      std::mt19937_64 random(5);
      std::normal_distribution<double> normal;
      for (int k = 0; k < 500; ++k) {
        for (double& x : v) x = normal(random);
        Vector x(size);
        for (double& entry : x) entry = 4 * normal(random);
        log_softmax_jvp(plain_softmax(x, 1), v, -kLambda, out);
        EXPECT_LE(pnorm_down(out, p) / pnorm_up(v, p), bound.hi * (1 + 1e-14));  // plain jvp
      }
    }
  }
  EXPECT_EQ(log_softmax_global_norm(Norm(1), 10, 2), point(18));
  EXPECT_EQ(log_softmax_global_norm(Norm(2), 16, 2), point(8));
  EXPECT_EQ(log_softmax_global_norm(Norm::infinity(), 10, 2), point(4));
}

// The gradient s - e_y, largest where another class is certain.
TEST(SoftmaxCalculus, CrossEntropyConstants) {
  for (const double p : {1.0, 1.5, 2.0, 4.0, kInf}) {
    const Interval bound = cross_entropy_global_norm(Norm(p), 4, 1);
    const Vector s = plain_softmax({0, 40, 0, 0}, 1);
    const double dual = Norm(p).dual().p(),
                 size = pnorm_up(Vector{s[0] - 1, s[1], s[2], s[3]}, dual);
    EXPECT_LE(size * (1 - 1e-14), bound.hi);
    EXPECT_GE(size, 0.9999999 * bound.lo);
  }
  EXPECT_EQ(cross_entropy_global_norm(Norm(1), 4, 1), point(1));
  EXPECT_EQ(cross_entropy_global_norm(Norm::infinity(), 4, 1), point(2));
}

TEST(SoftmaxCalculus, Cocoercivity) {
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  for (const double p : {1.0, 1.5, 2.0, 4.0, kInf}) {
    const Interval constant = softmax_cocoercivity(Norm(p), kLambda);
    const double dual = Norm(p).dual().p();
    double smallest = kInf;
    for (int k = 0; k < 2000; ++k) {
      // Two entries near each other are the worst.
      Vector x(2 + k % 3), y;
      for (double& v : x) v = k % 2 == 0 ? 1e-3 * normal(random) : 2 * normal(random);
      for (std::size_t i = 2; i < x.size() && k % 2 == 0; ++i) x[i] -= 40;
      y = x;
      for (double& v : y) v += 0.1 * normal(random);
      const Vector a = plain_softmax(x, kLambda), b = plain_softmax(y, kLambda);
      Vector d(x.size()), e(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) d[i] = a[i] - b[i], e[i] = x[i] - y[i];
      const double size = pnorm_down(d, dual);
      if (size < 1e-3) continue;
      smallest = std::min(smallest, dot(d, e) / (size * size));
    }
    EXPECT_GE(smallest, constant.lo * (1 - 1e-11)) << p;
    EXPECT_LE(smallest, 1.01 * constant.hi) << p;
  }
  EXPECT_EQ(softmax_nonexpansive_lambda(parse_norms("2")), point(2));
  EXPECT_EQ(softmax_nonexpansive_lambda(parse_norms("inf:1")), point(1));
  EXPECT_EQ(softmax_nonexpansive_lambda(parse_norms("1:inf")), point(4));
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "softmax/secular.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace lipscope {
namespace {

// The largest zero of sum w / (w - nu) by bisection on nu - second, over the sum of the weights.
long double reference(double top, std::span<const double> tail) {
  long double second = 0, total = top;
  for (const double w : tail) {
    second = std::max(second, static_cast<long double>(w));
    total += w;
  }
  long double from = 0, to = top - second;
  for (int step = 0; step < 20000 && from < to; ++step) {
    const long double x = (from + to) / 2;
    if (x == from || x == to) break;
    long double h = top / ((top - second) - x);
    for (const double w : tail) h -= w / ((second - w) + x);
    (h < 0 ? from : to) = x;
  }
  return (second + from) / total;
}

void expect_encloses(double top, const std::vector<double>& tail, double width) {
  const Interval b = top_eigenvalue(top, tail);
  const long double exact = reference(top, tail);
  EXPECT_LE(b.lo, exact * (1 + 1e-18L));
  EXPECT_GE(b.hi, exact * (1 - 1e-18L));
  EXPECT_LE(b.hi - b.lo, width * b.hi) << "top " << top << ", " << tail.size() << " others";
  EXPECT_LE(std::fabs(static_cast<double>(midpoint(b) / exact - 1)), 1e-12);
}

TEST(Secular, AgreesWithBisection) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (const std::size_t n : {2, 3, 5, 8, 17, 64, 200, 1000}) {
    for (const double scale : {1e-6, 0.1, 1.0, 3.0, 10.0, 60.0}) {
      for (int k = 0; k < 20; ++k) {
        std::vector<double> x(n);
        for (double& v : x) v = scale * normal(random);
        std::sort(x.begin(), x.end(), std::greater<>());
        std::vector<double> tail;
        for (std::size_t i = 1; i < n; ++i) tail.push_back(std::exp(std::max(-690.0, x[i] - x[0])));
        if (tail[0] == 1) continue;
        expect_encloses(1, tail, 1e-13);
      }
    }
  }
}

TEST(Secular, NearlyEqualWeights) {
  for (const double gap : {0x1p-52, 0x1p-40, 1e-9, 1e-4}) {
    expect_encloses(1, {1 - gap}, 1e-14);
    expect_encloses(1, {1 - gap, 1 - gap, 1 - 2 * gap}, 1e-14);
    expect_encloses(1, {1 - gap, 0.3, 1e-200}, 1e-14);
    std::vector<double> flat(500, 1 - gap);
    expect_encloses(1, flat, 1e-13);
    flat[7] = 1 - 0.5 * gap;
    expect_encloses(1, flat, 1e-13);
  }
}

TEST(Secular, OneDominates) {
  for (const double w : {1e-3, 1e-10, 1e-50, 1e-299}) {
    expect_encloses(1, {w}, 1e-14);
    expect_encloses(1, {w, w}, 1e-14);
    expect_encloses(1, {w, 0.999 * w, 0.1 * w, 1e-300}, 1e-14);
    expect_encloses(1, std::vector<double>(1000, w), 1e-12);
  }
}

TEST(Secular, ExactCases) {
  EXPECT_EQ(top_eigenvalue(1, {}), point(0));
  // Two equal largest weights: the eigenvalue is their share.
  const std::vector<double> tie{0.5, 1, 0.25, 0.25};
  EXPECT_TRUE(contains(top_eigenvalue(1, tie), 1.0 / 3));
  const std::vector<double> equal(3, 1.0);
  EXPECT_TRUE(contains(top_eigenvalue(1, equal), 0.25));
  // (s1, s2): 2 s1 s2.
  const std::vector<double> quarter{1.0 / 3};
  EXPECT_NEAR(midpoint(top_eigenvalue(1, quarter)), 0.375, 1e-15);
}

TEST(Secular, TenMillionWeights) {
  std::vector<double> tail(10'000'000 - 1);
  for (std::size_t i = 0; i < tail.size(); ++i)
    tail[i] = 0.9 / (1 + 1e-3 * static_cast<double>(i % 1000));
  const Interval b = top_eigenvalue(1, tail);
  EXPECT_LE(b.hi - b.lo, 1e-12 * b.hi);
  EXPECT_GT(b.lo, 0);
  // g_1 = s_1 (1 - s_1 + s_2) is above, s_2 below.
  double total = 1;
  for (const double w : tail) total += w;
  EXPECT_LE(b.lo, (1 / total) * (1 - 1 / total + 0.9 / total));
  EXPECT_GE(b.hi, 0.9 / total);
}

TEST(Secular, PositiveSums) {
  std::vector<double> x(1000, 0.1);
  const PositiveSum sum = sum_positive(x);
  EXPECT_LE(sum.down(), 1000 * 0.1L);
  EXPECT_GE(sum.up(), 1000 * 0.1L);
}

}  // namespace
}  // namespace lipscope

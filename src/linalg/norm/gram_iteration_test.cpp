// SPDX-License-Identifier: Apache-2.0
#include "linalg/norm/gram_iteration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/rounding.h"
#include "linalg/norm/norm_reference_for_test.h"

namespace lipscope {
namespace {

using reference::integer;
using reference::Matrix;
using Random = std::mt19937_64;

constexpr double kWork = 1e12;

TEST(GramIteration, IsAnUpperBoundAfterAnyNumberOfSteps) {
  Random r(1);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 500; ++trial) {
    const Index rows = integer(r, 1, 14), cols = integer(r, 1, 14);
    Matrix a(rows, cols);
    std::vector<double> x;
    const int exponent = trial % 3 == 0 ? static_cast<int>(integer(r, -200, 200)) : 0;
    for (long double& v : a.at) {
      v = x.emplace_back(trial % 5 == 0 ? static_cast<double>(integer(r, -1, 1))
                                        : std::ldexp(normal(r), exponent));
    }
    const long double value = reference::spectral(a);
    double before = kInf;
    for (const int steps : {0, 1, 2, 5, 12}) {
      const double upper = gram_iteration(rows, cols, x.data(), {.max_work = kWork}, steps).upper;
      EXPECT_GE(static_cast<long double>(upper), value * (1 - 1e-17L)) << steps;
      EXPECT_LE(upper, before * (1 + 1e-12));
      before = upper;
    }
    EXPECT_LE(before, static_cast<double>(value) * 1.001);
  }
}

TEST(GramIteration, RankOneIsExact) {
  std::vector<double> x;
  for (int i = 0; i < 30; ++i) {
    for (int j = 0; j < 20; ++j) x.push_back((i % 4 + 1) * (j % 3 - 1));
  }
  const SpectralUpper b = gram_iteration(30, 20, x.data(), {.max_work = kWork});
  double frobenius = 0;
  for (const double v : x) frobenius += v * v;
  EXPECT_GE(b.upper, std::sqrt(frobenius) * (1 - 1e-15));
  EXPECT_LE(b.upper, std::sqrt(frobenius) * (1 + 1e-12));
}

// All singular values equal: the slowest case, n^(1/2^(k+2)).
TEST(GramIteration, Identity) {
  constexpr Index kSize = 64;
  std::vector<double> x(kSize * kSize);
  for (std::size_t i = 0; i < kSize; ++i) x[i * (kSize + 1)] = 1;
  EXPECT_NEAR(gram_iteration(kSize, kSize, x.data(), {.max_work = kWork}, 0).upper, std::sqrt(8),
              1e-9);
  EXPECT_NEAR(gram_iteration(kSize, kSize, x.data(), {.max_work = kWork}, 1).upper,
              std::pow(64, 0.125), 1e-9);
  const double settled = gram_iteration(kSize, kSize, x.data(), {.max_work = kWork}).upper;
  EXPECT_GE(settled, 1);
  EXPECT_LE(settled, 1.001);
}

TEST(GramIteration, StopsWhereWorkEnds) {
  const std::vector<double> x(100, 1.0);
  EXPECT_EQ(gram_iteration(10, 10, x.data(), {.max_work = 0}).upper, kInf);
  EXPECT_EQ(gram_iteration(0, 10, x.data(), {.max_work = kWork}).upper, kInf);
  EXPECT_LE(gram_iteration(10, 10, x.data(), {.max_work = 600}).upper, 10.0001);
  const std::vector<double> zeros(100, 0.0);
  EXPECT_LE(gram_iteration(10, 10, zeros.data(), {.max_work = kWork}).upper, 1e-150);
  std::vector<double> bad = x;
  bad[3] = kNaN;
  EXPECT_EQ(gram_iteration(10, 10, bad.data(), {.max_work = kWork}).upper, kInf);
}

TEST(GramIteration, ReplacesTheFactorisationOfLargeMatrices) {
  Random r(2);
  std::normal_distribution<double> normal;
  std::vector<double> x(60 * 40), radius(60 * 40, 1e-3);
  for (double& v : x) v = normal(r);
  const NormPair two = parse_norms("2");
  const NormBracket exact = matrix_norm({60, 40, x.data()}, two);
  const NormBracket large = matrix_norm({60, 40, x.data()}, two, {.max_dense = 30});
  EXPECT_EQ(large.how, "Gram iteration [norms-15]");
  EXPECT_GE(large.upper, exact.lower);
  EXPECT_LE(large.upper, exact.upper * 1.001);
  EXPECT_LE(large.lower, exact.upper);
  EXPECT_GE(large.lower, exact.lower * (1 - 1e-4));
  const NormBracket wide = matrix_norm({60, 40, x.data(), radius.data()}, two, {.max_dense = 30});
  EXPECT_GE(wide.upper, large.upper);
  // Where sums are sharper they win.
  const std::vector<double> ones(60 * 40, 1.0);
  EXPECT_NEAR(matrix_norm({60, 40, ones.data()}, two, {.max_dense = 30}).upper, std::sqrt(2400),
              1e-9);
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Constants of softmax: golden values, and for every theorem a case where a constant 1 % smaller
// would be caught.
#include "softmax/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lipscope/error.h"
#include "softmax/norm_parts.h"

namespace lipscope {
namespace {

NormBracket norm_at(const std::vector<double>& s, const char* norms) {
  return SoftmaxNorm(parse_norms(norms))(SoftmaxRow::from_weights(s));
}
// Both ends, to the digits given.
void expect_value(const std::vector<double>& s, const char* norms, double value, double digits) {
  const NormBracket b = norm_at(s, norms);
  EXPECT_NEAR(b.lower, value, digits) << norms;
  EXPECT_NEAR(b.upper, value, digits) << norms;
  EXPECT_LE(b.lower, b.upper);
}

TEST(SoftmaxNorm, GoldenValues) {
  const std::vector<double> a{0.5, 0.3, 0.2}, b{0.7, 0.2, 0.1}, c{0.9, 0.05, 0.05};
  expect_value(a, "2", 0.388102496759067, 2e-15);
  expect_value(a, "1", 0.5, 2e-15);
  expect_value(a, "inf", 0.5, 2e-15);
  expect_value(a, "1:inf", 0.25, 1e-15);
  expect_value(a, "inf:1", 1, 1e-11);
  EXPECT_NEAR(norm_at(a, "3").lower, 0.394638057361, 1e-12);
  EXPECT_NEAR(norm_at(a, "1.5").lower, 0.394638057361, 1e-12);
  EXPECT_NEAR(norm_at(a, "4").lower, 0.405600080665, 1e-12);
  expect_value(b, "2", 0.334403065089106, 2e-15);
  expect_value(b, "1", 0.42, 2e-15);
  EXPECT_NEAR(norm_at(b, "3").lower, 0.339578306830, 1e-12);
  EXPECT_NEAR(norm_at(b, "4").lower, 0.347491042066, 1e-12);
  expect_value(c, "2", 0.135, 1e-15);
  expect_value(c, "1", 0.18, 1e-15);
  expect_value({0.4, 0.4, 0.2}, "2", 0.4, 1e-15);
  expect_value({0.25, 0.25, 0.25, 0.25}, "2", 0.25, 1e-15);
}

TEST(SoftmaxNorm, GlobalConstantIsAttained) {
  for (const double p : {1.0, 1.25, 2.0, 3.0, kInf}) {
    for (const double q : {1.0, 1.5, 2.0, 6.0, kInf}) {
      const NormPair norms{Norm(p), Norm(q)};
      const Interval global = softmax_global_norm(norms, 5, -3);
      const double value = 3 * std::exp2((q == kInf ? 0 : 1 / q) - (p == kInf ? 0 : 1 / p) - 1);
      EXPECT_NEAR(global.lo, value, 1e-14);
      EXPECT_LE(global.lo, global.hi);
      // Attained for two entries, approached for more.
      const SoftmaxRow two(std::vector<double>{1, 1}, -3);
      EXPECT_GE(softmax_quotient_down(two, std::vector<double>{1, -1}, norms),
                global.hi * (1 - 1e-13));
      const SoftmaxRow five(std::vector<double>{0, 0, 20, 20, 20}, -3);
      const double lower = SoftmaxNorm(norms)(five).lower;
      EXPECT_GE(lower, global.hi * (1 - 1e-9)) << norms.name();
      EXPECT_LE(lower, global.hi);
    }
  }
  EXPECT_EQ(softmax_global_norm(parse_norms("2"), 1, 1), point(0));
  EXPECT_EQ(softmax_global_norm(parse_norms("2"), 2, 1), point(0.5));
  EXPECT_EQ(softmax_global_norm(parse_norms("1:inf"), 2, 4), point(1));
  EXPECT_EQ(softmax_global_norm(parse_norms("inf:1"), 2, 4), point(4));
}

TEST(SoftmaxNorm, ExactPairsHaveNarrowBrackets) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (const char* text : {"1", "inf", "2", "1:inf", "1:2", "1:3", "2:inf", "1.5:inf"}) {
    const SoftmaxNorm norm(parse_norms(text));
    for (const std::size_t n : {2, 3, 10, 100}) {
      for (const double scale : {0.1, 1.0, 5.0, 30.0}) {
        std::vector<double> x(n);
        for (double& v : x) v = scale * normal(random);
        const SoftmaxRow row(x, 1);
        const NormBracket b = norm(row);
        EXPECT_LE(b.upper, b.lower * (1 + 1e-12)) << text;
        // Found by search as well.
        const double seen = softmax_quotient_down(
            row, softmax_parts::stretched_vector(row, norm.norms()), norm.norms());
        EXPECT_LE(seen, b.upper);
        EXPECT_GE(seen, 0.99 * b.upper) << text << " n " << n << " scale " << scale;
      }
    }
  }
}

TEST(SoftmaxNorm, MeanRatioForOtherExponents) {
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  for (const char* text : {"1.2", "1.5", "3", "6"}) {
    const SoftmaxNorm norm(parse_norms(text));
    double sum = 0;
    constexpr int kRows = 300;
    for (int r = 0; r < kRows; ++r) {
      std::vector<double> x(2 + random() % 40);
      const double scale = std::vector<double>{0.3, 1, 2, 4}[random() % 4];
      for (double& v : x) v = scale * normal(random);
      const NormBracket b = norm(SoftmaxRow(x, 1));
      EXPECT_LE(b.lower, b.upper);
      sum += b.upper / b.lower;
    }
    EXPECT_LE(sum / kRows, 1.07) << text;
  }
}

// Two values on sets of measure x and 1 - x are the worst functions for f -> f - mean.
TEST(SoftmaxNorm, CentringNorm) {
  EXPECT_EQ(centring_norm_up(Norm(1)), 2);
  EXPECT_EQ(centring_norm_up(Norm(2)), 1);
  EXPECT_EQ(centring_norm_up(Norm::infinity()), 2);
  for (const double p : {1.05, 1.2, 1.5, 1.9, 2.5, 3.0, 6.0, 20.0}) {
    double best = 0;
    for (int k = 1; k < 4000; ++k) {
      const double x = 0.5 * std::pow(k / 4000.0, 4), e = 1 / (p - 1);
      // Hoelder's case of equality.
      const double a = std::pow(x, -e), b = -std::pow(1 - x, -e), mean = x * a + (1 - x) * b;
      const double above =
          x * std::pow(std::fabs(a - mean), p) + (1 - x) * std::pow(std::fabs(b - mean), p);
      const double below = x * std::pow(std::fabs(a), p) + (1 - x) * std::pow(std::fabs(b), p);
      best = std::max(best, std::pow(above / below, 1 / p));
    }
    EXPECT_GE(centring_norm_up(Norm(p)), best * (1 - 1e-12)) << p;
    EXPECT_LE(centring_norm_up(Norm(p)), best * (1 + 1e-3)) << p;
  }
}

TEST(SoftmaxNorm, SchurTestIsExactForTwoEntries) {
  for (const double p : {1.1, 1.5, 2.0, 3.0, 7.0}) {
    const SoftmaxRow row = SoftmaxRow::from_weights(std::vector<double>{0.75, 0.25});
    EXPECT_GE(softmax_parts::schur_norm_up(row, p), 0.375);
    EXPECT_LE(softmax_parts::schur_norm_up(row, p), 0.375 * (1 + 1e-12)) << p;
  }
}

// 3 -> 1.5 on a uniform row of 4: v = (1, 1, -1, -1) attains the interpolated bound.
TEST(SoftmaxNorm, InterpolationIsSharpSomewhere) {
  const NormBracket b = norm_at({1, 1, 1, 1}, "3:1.5");
  EXPECT_GE(b.lower, b.upper * (1 - 1e-13));
}

TEST(SoftmaxNorm, CutNorm) {
  // A dominant entry: 4 s (1 - s). Otherwise the best partition: 0.4 against 0.35 + 0.25.
  expect_value({0.8, 0.1, 0.1}, "inf:1", 0.64, 1e-14);
  expect_value({0.4, 0.35, 0.25}, "inf:1", 0.96, 1e-11);
  const std::vector<double> many(1000, 1.0);
  expect_value(many, "inf:1", 1, 1e-12);
  EXPECT_LE(softmax_quotient_down(SoftmaxRow::from_weights(std::vector<double>{0.4, 0.35, 0.25}),
                                  std::vector<double>{1, -1, -1}, parse_norms("inf:1")),
            0.96);
}

TEST(SoftmaxNorm, DominatedRowsKeepRelativeAccuracy) {
  for (const double gap : {30.0, 100.0, 600.0}) {
    std::vector<double> x(1001, 0.0);
    x[5] = gap;
    const long double tail = 1000 * std::exp(static_cast<long double>(-gap));
    const long double exact = 2 * tail / ((1 + tail) * (1 + tail));
    for (const char* text : {"1", "inf"}) {
      const NormBracket b = SoftmaxNorm(parse_norms(text))(SoftmaxRow(x, 1));
      EXPECT_LE(b.lower, exact);
      EXPECT_GE(b.upper, exact);
      EXPECT_LE(b.upper, exact * (1 + 1e-13L));
    }
  }
}

// Entries too small to be kept: what they add is bounded, sharply for inf -> 1.
TEST(SoftmaxNorm, LostEntries) {
  const SoftmaxRow row(std::vector<double>{0, -695}, 1);
  EXPECT_EQ(row.weights().size(), 1U);
  EXPECT_EQ(row.size(), 2U);
  EXPECT_GE(SoftmaxNorm(parse_norms("inf:1"))(row).upper, 4 * std::exp(-695.0));
  EXPECT_LE(SoftmaxNorm(parse_norms("inf:1"))(row).upper, 4.01 * std::exp(-695.0));
  EXPECT_GE(SoftmaxNorm(parse_norms("2"))(row).upper, 2 * std::exp(-695.0));
  EXPECT_EQ(SoftmaxNorm(parse_norms("2"))(row).lower, 0);
  const SoftmaxRow far(std::vector<double>{1e308, -1e308}, 5);
  EXPECT_GT(SoftmaxNorm(parse_norms("2"))(far).upper, 0);
  // A tiny lambda makes far logits comparable.
  const SoftmaxRow near(std::vector<double>{1.5e308, -1.5e308}, 1e-309);
  EXPECT_NEAR(near.probability(1).hi, 1 / (1 + std::exp(0.3)), 1e-12);
}

TEST(SoftmaxRow, WeightsAreWithinTheirError) {
  std::mt19937_64 random(6);
  std::normal_distribution<double> normal;
  for (int k = 0; k < 2000; ++k) {
    std::vector<double> x(2 + random() % 10);
    const double lambda = std::exp(3 * normal(random)) * (k % 2 == 0 ? 1 : -1);
    for (double& v : x) v = std::exp(normal(random)) * 5 * normal(random);
    const SoftmaxRow row(x, lambda);
    long double sum = 0;
    const auto at = [&](std::size_t j) {
      return static_cast<long double>(lambda) *
             (static_cast<long double>(x[j]) - x[static_cast<std::size_t>(row.places()[0])]);
    };
    for (std::size_t j = 0; j < x.size(); ++j) sum += std::exp(at(j));
    for (std::size_t i = 0; i < row.weights().size(); ++i) {
      const long double s = std::exp(at(static_cast<std::size_t>(row.places()[i]))) / sum;
      EXPECT_LE(row.probability(i).lo, s * (1 + 1e-18L));
      EXPECT_GE(row.probability(i).hi, s * (1 - 1e-18L));
      EXPECT_LE(row.probability(i).hi, row.probability(i).lo * (1 + 3e-14) + 1e-300);
    }
    const long double lse = x[static_cast<std::size_t>(row.places()[0])] + std::log(sum) / lambda;
    EXPECT_NEAR(midpoint(row.log_sum_exp()), static_cast<double>(lse),
                1e-14 * (1 + std::fabs(static_cast<double>(lse))));
  }
}

TEST(SoftmaxRow, MaskedAndBadEntries) {
  const SoftmaxRow row(std::vector<double>{1, -kInf, 2}, 1);
  EXPECT_EQ(row.size(), 2U);
  EXPECT_EQ(row.places()[0], 2);
  EXPECT_THROW(SoftmaxRow(std::vector<double>{1, kNaN}, 1), Error);
  EXPECT_THROW(SoftmaxRow(std::vector<double>{1, kInf}, 1), Error);
  EXPECT_THROW(SoftmaxRow(std::vector<double>{1, 2}, 0), Error);
  EXPECT_THROW(SoftmaxRow(std::vector<double>{1, 2}, kNaN), Error);
  EXPECT_THROW(SoftmaxRow::from_weights(std::vector<double>{1, -2}), Error);
  const NormBracket one = SoftmaxNorm(parse_norms("2"))(SoftmaxRow(std::vector<double>{7}, 1));
  EXPECT_EQ(one.lower, 0);
  EXPECT_EQ(one.upper, 0);
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// The fit of the end point: known laws, degenerate samples, other laws.
#include "estimate/reverse_weibull.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace lipscope {
namespace {

std::vector<double> sample(const ReverseWeibull& law, std::size_t count, std::mt19937_64& rng) {
  std::vector<double> all(count);
  for (double& e : all) e = law.draw(rng);
  return all;
}

TEST(ReverseWeibull, DrawsFollowTheLaw) {
  std::mt19937_64 rng(3);
  const ReverseWeibull law{2, 0.5, 1.7};
  // 1.95 / sqrt(n) is passed once in a thousand.
  EXPECT_LT(largest_deviation(sample(law, 4000, rng), law), 1.95 / std::sqrt(4000));
  EXPECT_EQ(law.cumulative(2), 1);
  EXPECT_NEAR(law.cumulative(1.5), std::exp(-1), 1e-15);
}

// The middle half of the end points lies within some hundredths to tenths of the scale; the errors
// for shapes up to 2 fall faster than one over the square root of the sample.
TEST(ReverseWeibull, RecoversTheEndPoint) {
  struct Case {
    double shape, error;
  };
  for (const Case& c : {Case{0.5, 0.001}, {1, 0.02}, {1.5, 0.06}, {2, 0.09}, {3, 0.17}, {5, 0.3}}) {
    std::mt19937_64 rng(1);
    const ReverseWeibull law{7, 0.1, c.shape};
    std::vector<double> errors;
    for (int i = 0; i < 60; ++i) {
      const std::vector<double> maxima = sample(law, 100, rng);
      const auto fit = fit_reverse_weibull(maxima);
      if (!fit) continue;
      EXPECT_GE(fit->end, std::ranges::max(maxima));
      errors.push_back((fit->end - law.end) / law.scale);
    }
    ASSERT_GE(errors.size(), 50U) << c.shape;
    std::ranges::sort(errors);
    EXPECT_GT(errors[errors.size() / 4], -c.error) << c.shape;
    EXPECT_LT(errors[errors.size() * 3 / 4], c.error) << c.shape;
  }
}

TEST(ReverseWeibull, MoreMaximaLessError) {
  std::mt19937_64 rng(1);
  const ReverseWeibull law{1, 1, 3};
  const auto fit = fit_reverse_weibull(sample(law, 20000, rng));
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->end, 1, 0.03);
  EXPECT_NEAR(fit->scale, 1, 0.04);
  EXPECT_NEAR(fit->shape, 3, 0.15);
}

TEST(ReverseWeibull, UnitsDoNotMatter) {
  std::mt19937_64 rng(5);
  std::vector<double> maxima = sample({1, 0.2, 2.5}, 80, rng);
  const auto fit = fit_reverse_weibull(maxima);
  for (double& e : maxima) e = 1e-9 * (e - 1);
  const auto small = fit_reverse_weibull(maxima);
  ASSERT_TRUE(fit && small);
  EXPECT_NEAR(small->end * 1e9 + 1, fit->end, 1e-4);
  EXPECT_NEAR(small->shape, fit->shape, 1e-2);
}

// The likelihood has no bound for shapes below 1: the end point stays where the largest maximum is.
TEST(ReverseWeibull, ShapesBelowOneDoNotCollapse) {
  std::mt19937_64 rng(2);
  const std::vector<double> maxima = sample({1, 0.1, 0.5}, 200, rng);
  const auto fit = fit_reverse_weibull(maxima);
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->end, std::ranges::max(maxima));
  EXPECT_NEAR(fit->shape, 0.5, 0.1);
}

TEST(ReverseWeibull, DegenerateSamplesHaveNoFit) {
  EXPECT_FALSE(fit_reverse_weibull({}));
  EXPECT_FALSE(fit_reverse_weibull(std::vector<double>{1, 2}));
  EXPECT_FALSE(fit_reverse_weibull(std::vector<double>(50, 3.0)));
  EXPECT_FALSE(fit_reverse_weibull(std::vector<double>{1, 1, 1, 2}));
  EXPECT_FALSE(fit_reverse_weibull(std::vector<double>{1, 2, HUGE_VAL}));
}

TEST(ReverseWeibull, UnboundedLawsHaveNoEnd) {
  std::mt19937_64 rng(4);
  std::uniform_real_distribution<double> uniform;
  for (int i = 0; i < 10; ++i) {
    std::vector<double> heavy(100);
    for (double& e : heavy) e = std::pow(uniform(rng), -0.5);
    EXPECT_FALSE(fit_reverse_weibull(heavy));
  }
}

TEST(ReverseWeibull, PValuesAreUniformForTheLawItself) {
  std::mt19937_64 rng(6);
  const int runs = 80;
  double mean = 0;
  int small = 0;
  for (int i = 0; i < runs; ++i) {
    const std::vector<double> maxima = sample({1, 0.3, 2}, 40, rng);
    const auto fit = fit_reverse_weibull(maxima);
    ASSERT_TRUE(fit);
    const double p = fit_p_value(maxima, *fit, rng);
    mean += p / runs;
    small += p < 0.1 ? 1 : 0;
  }
  // Three standard deviations: 0.29 / sqrt(80) and sqrt(80 * 0.1 * 0.9).
  EXPECT_NEAR(mean, 0.5, 0.1);
  EXPECT_LE(small, 16);
}

TEST(ReverseWeibull, PValuesAreSmallForOtherLaws) {
  std::mt19937_64 rng(7);
  std::normal_distribution<double> normal;
  std::vector<double> two_hills(100);
  for (std::size_t i = 0; i < two_hills.size(); ++i)
    two_hills[i] = (i % 2 == 0 ? 1 : 5) + 0.1 * normal(rng);
  const auto fit = fit_reverse_weibull(two_hills);
  ASSERT_TRUE(fit);
  EXPECT_LT(fit_p_value(two_hills, *fit, rng), 0.05);
}

}  // namespace
}  // namespace lipscope

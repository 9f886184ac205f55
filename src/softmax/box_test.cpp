// SPDX-License-Identifier: Apache-2.0
#include "softmax/box.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "softmax/norm.h"

namespace lipscope {
namespace {

using Random = std::mt19937_64;
using Vector = std::vector<double>;

double uniform(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

struct Case {
  Vector lower, upper;
  double lambda;
  [[nodiscard]] LogitBox box() const { return {lower, upper, lambda}; }
};

Case random_case(Random& random) {
  Case c;
  std::normal_distribution<double> normal;
  const std::size_t n = 2 + random() % 7;
  const double radius = std::pow(10, 1 - 4 * uniform(random)), scale = std::exp(normal(random));
  for (std::size_t i = 0; i < n; ++i) {
    const double x = scale * normal(random);
    c.lower.push_back(x - radius * uniform(random));
    c.upper.push_back(x + radius * uniform(random));
  }
  c.lambda = random() % 3 == 0 ? -0.7 : 1;
  return c;
}

Vector corner(const Case& c, std::size_t bits) {
  Vector x(c.lower.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = (bits >> i & 1) != 0 ? c.upper[i] : c.lower[i];
  return x;
}
Vector inside(Random& random, const Case& c) {
  Vector x(c.lower.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double t = random() % 3 == 0 ? 0 : random() % 3 == 0 ? 1 : uniform(random);
    x[i] = std::clamp(c.lower[i] + t * (c.upper[i] - c.lower[i]), c.lower[i], c.upper[i]);
  }
  return x;
}
std::vector<long double> exact_softmax(const Vector& x, double lambda) {
  std::vector<long double> s;
  long double sum = 0;
  for (const double v : x) {
    s.push_back(std::exp(static_cast<long double>(lambda) * (static_cast<long double>(v) - x[0])));
    sum += s.back();
  }
  for (long double& v : s) v /= sum;
  return s;
}

// The extremes are at corners, so trying all of them gives the exact ranges.
TEST(SoftmaxBox, RangesAreExact) {
  Random random(1);
  for (int k = 0; k < 300; ++k) {
    const Case c = random_case(random);
    const std::size_t n = c.lower.size();
    const auto ranges = softmax_ranges(c.box());
    Vector v(n);
    for (double& x : v) x = uniform(random) - 0.5;
    const Interval functional = softmax_functional_range(c.box(), v);
    std::vector<long double> low(n, 1), high(n, 0);
    long double least = 10, most = -10;
    for (std::size_t bits = 0; bits < std::size_t{1} << n; ++bits) {
      const auto s = exact_softmax(corner(c, bits), c.lambda);
      long double sum = 0;
      for (std::size_t i = 0; i < n; ++i) {
        low[i] = std::min(low[i], s[i]);
        high[i] = std::max(high[i], s[i]);
        sum += v[i] * s[i];
      }
      least = std::min(least, sum), most = std::max(most, sum);
    }
    constexpr long double kTiny = 1e-17L;  // of the reference
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_LE(ranges[i].share.lo, low[i] * (1 + kTiny));
      EXPECT_GE(ranges[i].share.hi, high[i] * (1 - kTiny));
      EXPECT_GE(ranges[i].share.lo, low[i] * (1 - 1e-13L));
      EXPECT_LE(ranges[i].share.hi, high[i] * (1 + 1e-13L));
      EXPECT_NEAR(ranges[i].rest.hi, static_cast<double>(1 - low[i]), 1e-13);
    }
    EXPECT_LE(functional.lo, least + kTiny);
    EXPECT_GE(functional.hi, most - kTiny);
    EXPECT_GE(functional.lo, least - 1e-13L);
    EXPECT_LE(functional.hi, most + 1e-13L);
  }
}

TEST(SoftmaxBox, NormDominatesEveryLocalNorm) {
  Random random(2);
  for (const char* text : {"1", "2", "inf", "1:inf", "inf:1", "1.5", "3", "2:3", "3:2", "1:2"}) {
    const SoftmaxNorm local(parse_norms(text));
    for (int k = 0; k < 200; ++k) {
      const Case c = random_case(random);
      const double upper = softmax_box_norm_up(c.box(), local.norms());
      EXPECT_LE(upper, softmax_global_norm(local.norms(), 2, c.lambda).hi);
      for (int s = 0; s < 5; ++s) {
        ASSERT_LE(local(SoftmaxRow(inside(random, c), c.lambda)).lower, upper) << text;
      }
    }
  }
}

// Where the range of the largest probability reaches 1/2, or its end nearest to 1/2, so does the
// box; on a point the bounds are those of the point.
TEST(SoftmaxBox, NormIsExact) {
  const Vector lower{-0.5, -0.5, -0.5}, upper{1.5, 0.5, 0.5};
  for (const char* text : {"1", "inf"}) {
    EXPECT_DOUBLE_EQ(softmax_box_norm_up({lower, upper}, parse_norms(text)), 0.5);
  }
  EXPECT_DOUBLE_EQ(softmax_box_norm_up({lower, upper}, parse_norms("1:inf")), 0.25);
  Random random(3);
  for (int k = 0; k < 200; ++k) {
    Case c = random_case(random);
    // A box whose largest norm is at a corner: every entry but one is fixed.
    for (std::size_t i = 1; i < c.lower.size(); ++i) c.upper[i] = c.lower[i];
    const NormPair one = parse_norms("1");
    const auto ranges = softmax_ranges(c.box());
    double best = 0;
    for (const ShareRange& r : ranges) {
      const double nearest = std::clamp(0.5, r.share.lo, r.share.hi);
      best = std::max(best, 2 * nearest * (1 - nearest) * std::fabs(c.lambda));
    }
    EXPECT_NEAR(softmax_box_norm_up(c.box(), one), best, 1e-13);
  }
  // s = (0.9, 0.05, 0.05): g_1 is the eigenvalue.
  const Vector x{std::log(18.0), 0, 0};
  EXPECT_GE(softmax_box_norm_up({x, x}, parse_norms("2")), 0.135);
  EXPECT_LE(softmax_box_norm_up({x, x}, parse_norms("2")), 0.135 * (1 + 1e-12));
}

TEST(SoftmaxBox, SmallBoxesAreNearlyPoints) {
  Random random(4);
  const NormPair two = parse_norms("2");
  for (int k = 0; k < 200; ++k) {
    Case c = random_case(random);
    const Vector x = c.lower;
    const NormBracket at = SoftmaxNorm(two)(SoftmaxRow(x, c.lambda));
    for (const double radius : {0.0, 1e-6, 1e-3}) {
      for (std::size_t i = 0; i < x.size(); ++i)
        c.lower[i] = x[i] - radius, c.upper[i] = x[i] + radius;
      const double upper = softmax_box_norm_up(c.box(), two);
      EXPECT_GE(upper, at.lower);
      EXPECT_LE(upper, at.upper * (1 + 6 * radius + 1e-12));
    }
  }
}

TEST(SoftmaxBox, UnboundedBoxes) {
  const Vector lower(4, -kInf), upper(4, kInf), zero(4, 0.0);
  for (const ShareRange& r : softmax_ranges({lower, upper})) {
    EXPECT_EQ(r.share, (Interval{0, 1}));
  }
  const Vector v{3, 1, 2, -1};
  EXPECT_EQ(softmax_functional_range({lower, upper}, v), (Interval{-1, 3}));
  EXPECT_EQ(softmax_box_norm_up({lower, upper}, parse_norms("2")), 0.5);
  EXPECT_EQ(softmax_box_norm_up({lower, upper, 3}, parse_norms("inf:1")), 3);
  // Half lines.
  const Interval half = softmax_functional_range({lower, zero}, v);
  EXPECT_LE(half.lo, -1);
  EXPECT_GE(half.hi, 3 - 1e-9);
  EXPECT_EQ(softmax_box_norm_up({Vector{0}, Vector{1}}, parse_norms("2")), 0);
}

// Wide boxes and far logits: still enclosed, and still sharp.
TEST(SoftmaxBox, FunctionalOfFarLogits) {
  const Vector lower{0, -800, -30}, upper{0.1, 5, 40}, v{1, -2, 5};
  const Interval r = softmax_functional_range({lower, upper}, v);
  const auto top = exact_softmax({0, -800, 40}, 1), low = exact_softmax({0, 5, -30}, 1);
  EXPECT_GE(r.hi, static_cast<double>(top[0] + 5 * top[2]) * (1 - 1e-16));
  EXPECT_LE(r.hi, 5);
  EXPECT_NEAR(r.lo, static_cast<double>(low[0] - 2 * low[1] + 5 * low[2]), 1e-13);
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "base/interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <string>

#include "base/rounding_reference_for_test.h"

namespace lipscope {
namespace {

using reference::Generator;
using reference::samples;

const Interval kWhole{-kInf, kInf};

// A member of x, often an endpoint or next to one, never infinite.
double member(const Interval& x, Generator& random) {
  const double lo = std::max(x.lo, -kMaxDouble), hi = std::min(x.hi, kMaxDouble);
  double v = 0;
  switch (random.below(6)) {
    case 0: v = lo; break;
    case 1: v = hi; break;
    case 2: v = next_up(lo); break;
    case 3: v = next_down(hi); break;
    default: v = lo + (hi / 2 - lo / 2) * 2 * random.uniform(0, 1);
  }
  return std::clamp(v, lo, hi);
}

// Intervals of every size, with special endpoints now and then.
Interval random_interval(Generator& random, double lo, double hi) {
  const auto endpoint = [&] {
    switch (random.below(10)) {
      case 0: return 0.0;
      case 1: return random.sign() * random.log_uniform(-60, 20);
      case 2: return random.any();
      case 3: return static_cast<double>(random.below(9)) - 4;
      case 4: return random.uniform(-800, 800);
      default: return random.uniform(-4, 4);
    }
  };
  for (;;) {
    double a = endpoint(), b = endpoint();
    if (random.below(3) == 0) b = a + std::fabs(a) * random.log_uniform(-52, -1);
    if (random.below(20) == 0) b = a;
    if (!std::isfinite(b)) b = a;
    Interval x{std::min(a, b), std::max(a, b)};
    if (random.below(30) == 0) x.lo = -kInf;
    if (random.below(30) == 0) x.hi = kInf;
    x.lo = std::max(x.lo, lo);
    x.hi = std::min(x.hi, hi);
    if (x.lo <= x.hi && x.lo < kInf && x.hi > -kInf) return x;
  }
}

struct UnaryCase {
  const char* name;
  Interval (*f)(const Interval&);
  reference::Unary exact;
  Interval domain;
};

int abs_exact(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t rounding) { return mpfr_abs(r, x, rounding); }
int neg_exact(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t rounding) { return mpfr_neg(r, x, rounding); }

const UnaryCase kUnaryCases[] = {
    {"neg", [](const Interval& x) { return -x; }, neg_exact, kWhole},
    {"abs", [](const Interval& x) { return abs(x); }, abs_exact, kWhole},
    {"sqr", sqr, mpfr_sqr, kWhole},
    {"sqrt", sqrt, mpfr_sqrt, {0, kInf}},
    {"exp", exp, mpfr_exp, kWhole},
    {"expm1", expm1, mpfr_expm1, kWhole},
    {"log", log, mpfr_log, {kMinSubnormal, kInf}},
    {"log2", log2, mpfr_log2, {kMinSubnormal, kInf}},
    {"log1p", log1p, mpfr_log1p, {next_up(-1), kInf}},
    {"tanh", tanh, mpfr_tanh, kWhole},
    {"sinh", sinh, mpfr_sinh, kWhole},
    {"cosh", cosh, mpfr_cosh, kWhole},
    {"erf", erf, mpfr_erf, kWhole},
    {"erfc", erfc, mpfr_erfc, {-30, 30}},
    {"sin", sin, mpfr_sin, kWhole},
    {"cos", cos, mpfr_cos, kWhole},
    {"atan", atan, mpfr_atan, kWhole},
    {"asin", asin, mpfr_asin, {-1, 1}},
    {"acos", acos, mpfr_acos, {-1, 1}},
    {"asinh", asinh, mpfr_asinh, kWhole},
    {"acosh", acosh, mpfr_acosh, {1, kInf}},
    {"atanh", atanh, mpfr_atanh, {next_up(-1), next_down(1)}},
    {"sigmoid", sigmoid, reference::sigmoid, kWhole},
    {"softplus", softplus, reference::softplus, kWhole},
};

class IntervalUnary : public testing::TestWithParam<UnaryCase> {};

TEST_P(IntervalUnary, ContainsEveryValue) {
  const UnaryCase& c = GetParam();
  Generator random(201);
  for (std::size_t i = 0; i < samples(8'000); ++i) {
    const Interval x = random_interval(random, c.domain.lo, c.domain.hi), y = c.f(x);
    ASSERT_LE(y.lo, y.hi) << x.lo << " " << x.hi;
    for (int k = 0; k < 3; ++k) {
      const double v = member(x, random);
      ASSERT_TRUE(contains(y, reference::exact(c.exact, v)))
          << std::hexfloat << "x in [" << x.lo << ", " << x.hi << "], " << v << " outside [" << y.lo
          << ", " << y.hi << "]";
    }
  }
}

TEST_P(IntervalUnary, NanStaysNanAndTheWholeLineIsFine) {
  const UnaryCase& c = GetParam();
  EXPECT_TRUE(is_nan(c.f(kNoInterval)) && is_nan(c.f({kNaN, 1})) && is_nan(c.f({1, kNaN})));
  EXPECT_FALSE(is_nan(c.f(kEntire)));
}

INSTANTIATE_TEST_SUITE_P(All, IntervalUnary, testing::ValuesIn(kUnaryCases),
                         [](const auto& param) { return std::string(param.param.name); });

struct BinaryCase {
  const char* name;
  Interval (*f)(const Interval&, const Interval&);
  reference::Binary exact;
};

const BinaryCase kBinaryCases[] = {
    {"add", [](const Interval& x, const Interval& y) { return x + y; }, mpfr_add},
    {"sub", [](const Interval& x, const Interval& y) { return x - y; }, mpfr_sub},
    {"mul", [](const Interval& x, const Interval& y) { return x * y; }, mpfr_mul},
    {"div", [](const Interval& x, const Interval& y) { return x / y; }, mpfr_div},
    {"min", [](const Interval& x, const Interval& y) { return min(x, y); }, mpfr_min},
    {"max", [](const Interval& x, const Interval& y) { return max(x, y); }, mpfr_max},
    {"pow", [](const Interval& x, const Interval& y) { return pow(x, y); }, mpfr_pow},
};

class IntervalBinary : public testing::TestWithParam<BinaryCase> {};

TEST_P(IntervalBinary, ContainsEveryValue) {
  const BinaryCase& c = GetParam();
  Generator random(202);
  const bool is_pow = c.exact == mpfr_pow, is_div = c.exact == mpfr_div;
  for (std::size_t i = 0; i < samples(is_pow ? 15'000 : 60'000); ++i) {
    const Interval x = random_interval(random, is_pow ? 0 : -kInf, kInf);
    const Interval y = random_interval(random, -kInf, kInf);
    const Interval z = c.f(x, y);
    ASSERT_LE(z.lo, z.hi);
    for (int k = 0; k < 3; ++k) {
      const double v = member(x, random), w = member(y, random);
      if ((is_div && w == 0) || (is_pow && v == 0 && w < 0)) continue;
      ASSERT_TRUE(contains(z, reference::exact(c.exact, v, w)))
          << std::hexfloat << v << ", " << w << " outside [" << z.lo << ", " << z.hi << "]";
    }
  }
}

TEST_P(IntervalBinary, NanNeverAppearsFromInfinityAndNeverDisappears) {
  const BinaryCase& c = GetParam();
  const double ends[] = {-kInf, -2, -1, 0, 0.5, 1, 3, kInf};
  for (const double a : ends) {
    for (const double b : ends) {
      for (const double d : ends) {
        for (const double e : ends) {
          const Interval x{a, b}, y{d, e};
          if (a > b || d > e || a == kInf || d == kInf || b == -kInf || e == -kInf) continue;
          if (c.exact == mpfr_pow && b < 0) continue;
          EXPECT_FALSE(is_nan(c.f(x, y))) << a << " " << b << " " << d << " " << e;
        }
      }
    }
  }
  EXPECT_TRUE(is_nan(c.f(kNoInterval, point(0))) && is_nan(c.f(point(0), kNoInterval)));
  EXPECT_TRUE(is_nan(c.f({0, kNaN}, kEntire)) && is_nan(c.f(kEntire, {kNaN, 0})));
}

INSTANTIATE_TEST_SUITE_P(All, IntervalBinary, testing::ValuesIn(kBinaryCases),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(Interval, IntegerPowersContainEveryValue) {
  Generator random(203);
  for (std::size_t i = 0; i < samples(20'000); ++i) {
    const int n = static_cast<int>(random.below(19)) - 9;
    const Interval x = random_interval(random, -kInf, kInf), y = pow(x, n);
    ASSERT_LE(y.lo, y.hi) << x.lo << " " << x.hi << " " << n;
    for (int k = 0; k < 3; ++k) {
      const double v = member(x, random);
      if (v == 0 && n < 0) continue;
      ASSERT_TRUE(contains(y, reference::exact(mpfr_pow, v, n))) << std::hexfloat << v << " " << n;
    }
  }
  EXPECT_EQ(pow(Interval{-2, 3}, 2), (Interval{0, 9}));
  EXPECT_EQ(pow(kEntire, 0), (Interval{1, 1}));
  EXPECT_EQ(pow(Interval{-1, 1}, -1), kEntire);
  EXPECT_EQ(pow(Interval{-1, 1}, -2), (Interval{1, kInf}));
  EXPECT_EQ(pow(Interval{0, 2}, -1), (Interval{0.5, kInf}));
  EXPECT_FALSE(is_nan(pow(Interval{0.5, 2}, INT_MIN)));
}

TEST(Interval, ProductsAndQuotientsWithZeroAndInfinity) {
  EXPECT_EQ(point(0) * kEntire, point(0));
  EXPECT_EQ(kEntire * point(0), point(0));
  EXPECT_EQ((Interval{0, 1} * Interval{0, kInf}), (Interval{0, kInf}));
  EXPECT_EQ((Interval{-1, 2} * Interval{3, 4}), (Interval{-4, 8}));
  EXPECT_EQ((Interval{1, 2} / Interval{-1, 1}), kEntire);
  EXPECT_EQ((Interval{1, 2} / point(0)), kEntire);
  EXPECT_EQ((Interval{1, 2} / Interval{0, 4}), (Interval{0.25, kInf}));
  EXPECT_EQ((Interval{1, 2} / Interval{-4, 0}), (Interval{-kInf, -0.25}));
  EXPECT_EQ((Interval{-1, 2} / Interval{0, 4}), kEntire);
  EXPECT_EQ((Interval{1, 2} / Interval{4, kInf}), (Interval{0, 0.5}));
  EXPECT_EQ((Interval{0, 1} / Interval{0, 1}), (Interval{0, kInf}));
}

TEST(Interval, DomainsAreRespected) {
  EXPECT_EQ(sqrt(Interval{-4, 9}), (Interval{0, 3}));
  EXPECT_EQ(log(Interval{-1, 1}), (Interval{-kInf, 0}));
  EXPECT_TRUE(is_nan(sqrt(Interval{-4, -1})) && is_nan(log(Interval{-2, -1})));
  EXPECT_TRUE(is_nan(asin(Interval{2, 3})) && is_nan(pow(Interval{-2, -1}, 0.5)));
}

TEST(Interval, WavesFindTheirExtremaExactly) {
  const double half_pi = kPiDown / 2;
  EXPECT_EQ(sin(Interval{1, 2}).hi, 1);
  EXPECT_EQ(sin(Interval{-2, -1}).lo, -1);
  EXPECT_EQ(cos(Interval{-1, 1}).hi, 1);
  EXPECT_EQ(cos(Interval{3, 4}).lo, -1);
  EXPECT_LT(cos(Interval{3, 4}).hi, -0.65);
  // The extremum at pi/2 lies between the neighbours kPiDown / 2 and kPiUp / 2.
  EXPECT_EQ(sin(Interval{1, kPiUp / 2}).hi, 1);
  EXPECT_LT(sin(Interval{1, 1.57}).hi, 1);
  EXPECT_EQ(sin(Interval{half_pi, kPiUp / 2}).hi, 1);
  // Ends at the extremum 0 of cos, from either side, and a width near pi and 2 pi.
  EXPECT_EQ(cos(Interval{0, 1}).hi, 1);
  EXPECT_GT(cos(Interval{0, 1}).lo, 0.54);
  EXPECT_GT(cos(Interval{-1, 0}).lo, 0.54);
  EXPECT_LT(cos(Interval{0, 3}).lo, -0.98);
  EXPECT_GT(cos(Interval{0, 3}).lo, -1);
  EXPECT_EQ(cos(Interval{0, kPiUp}).lo, -1);
  EXPECT_EQ(sin(Interval{0.1, 6.2}), (Interval{-1, 1}));
  EXPECT_EQ(sin(Interval{2, 2 + 6.3}), (Interval{-1, 1}));
  EXPECT_EQ(sin(Interval{-1.5, 1.5}).hi, sin_up(1.5));
  EXPECT_EQ(sin(kEntire), (Interval{-1, 1}));
  // Exact far away too: 1e15 is no multiple of pi / 2, and the next double is 1/8 away.
  const double far = 1e15;
  EXPECT_EQ(sin(Interval{far, next_up(far)}),
            hull({sin_down(far), sin_up(far)}, {sin_down(next_up(far)), sin_up(next_up(far))}));
  EXPECT_EQ(sin(Interval{1e22, next_up(1e22)}), (Interval{-1, 1}));

  // Dense sampling across many starts and widths up to 2 pi.
  Generator random(204);
  for (std::size_t i = 0; i < samples(20'000); ++i) {
    const double lo = random.uniform(-30, 30);
    const Interval x{lo, lo + random.uniform(0, 6.5)};
    const Interval s = sin(x), c = cos(x);
    double s_lo = 1, s_hi = -1, c_lo = 1, c_hi = -1;
    for (int k = 0; k <= 64; ++k) {
      const double v = std::min(x.hi, x.lo + (x.hi - x.lo) * k / 64);
      s_lo = std::min(s_lo, std::sin(v));
      s_hi = std::max(s_hi, std::sin(v));
      c_lo = std::min(c_lo, std::cos(v));
      c_hi = std::max(c_hi, std::cos(v));
    }
    ASSERT_TRUE(contains(s, {s_lo, s_hi}) && contains(c, {c_lo, c_hi})) << x.lo << " " << x.hi;
    // An extremum between two samples raises the sampled one by at most 1 - cos(6.5 / 128).
    const double gap = 0.0014;
    ASSERT_TRUE(s.hi - s_hi < gap && s_lo - s.lo < gap && c.hi - c_hi < gap && c_lo - c.lo < gap)
        << x.lo << " " << x.hi;
  }
}

TEST(Interval, SetOperations) {
  EXPECT_EQ(hull({1, 2}, {4, 5}), (Interval{1, 5}));
  EXPECT_EQ(intersect({1, 3}, {2, 5}), (Interval{2, 3}));
  EXPECT_TRUE(is_nan(intersect({1, 2}, {3, 4})));
  EXPECT_TRUE(is_nan(hull({1, kNaN}, {3, 4})) && is_nan(intersect(kNoInterval, kEntire)));
  EXPECT_TRUE(contains({1, 2}, 1.0) && !contains({1, 2}, kNaN) && !contains(kNoInterval, 1.0));
  EXPECT_TRUE(contains(kEntire, Interval{1, 2}) && !contains({1, 2}, Interval{1, 3}));
  EXPECT_EQ(width_up({0.1, 0.3}), sub_up(0.3, 0.1));
  EXPECT_EQ(width_up(kEntire), kInf);
  EXPECT_EQ(magnitude({-3, 2}), 3);
  EXPECT_EQ(mignitude({-3, 2}), 0);
  EXPECT_EQ(mignitude({-3, -2}), 2);
  EXPECT_TRUE(std::isnan(magnitude({kNaN, 1})) && std::isnan(magnitude({1, kNaN})));
  EXPECT_TRUE(std::isnan(mignitude({1, kNaN})) && std::isnan(midpoint(kNoInterval)));
  EXPECT_TRUE(is_nan(max(Interval{1, 2}, {kNaN, 3})) && is_nan(min(Interval{1, kNaN}, {0, 1})));
  EXPECT_EQ(midpoint(kEntire), 0);
  Generator random(205);
  for (std::size_t i = 0; i < samples(100'000); ++i) {
    const Interval x = random_interval(random, -kInf, kInf);
    const double m = midpoint(x), r = radius_up(x), v = member(x, random);
    ASSERT_TRUE(contains(x, m));
    ASSERT_LE(reference::exact(mpfr_sub, v, m).hi, r);
    ASSERT_LE(reference::exact(mpfr_sub, m, v).hi, r);
    ASSERT_GE(width_up(x), r);
    ASSERT_TRUE(mignitude(x) <= std::fabs(v) && std::fabs(v) <= magnitude(x));
  }
}

}  // namespace
}  // namespace lipscope

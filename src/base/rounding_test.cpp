// SPDX-License-Identifier: Apache-2.0
#include "base/rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>

#include "base/rounding_reference_for_test.h"

namespace lipscope {
namespace {

using reference::ExactSum;
using reference::Generator;
using reference::random_vector;
using reference::Real;
using reference::samples;
using reference::steps_between;

// Equal as bounds: the sign of zero is unspecified, NaN equals NaN.
bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

TEST(Rounding, ProcessArithmeticIsSound) { EXPECT_TRUE(rounding_self_test()); }

TEST(Rounding, Neighbours) {
  for (const double x : reference::extremes()) {
    EXPECT_EQ(next_up(x), std::nextafter(x, kInf)) << x;
    EXPECT_EQ(next_down(x), std::nextafter(x, -kInf)) << x;
  }
  EXPECT_EQ(next_up(kInf), kInf);
  EXPECT_EQ(next_up(-kInf), -kMaxDouble);
  EXPECT_TRUE(std::isnan(next_up(kNaN)));
}

TEST(Rounding, UlpStepsCountUlpOfTheExactValue) {
  // An exact value 1 + 3 ulp(1) computed 4 ulp(1) too low lies below 1, where ulp are half as wide.
  const double computed = 1 - 2 * 0x1p-53;
  EXPECT_GE(ulps_up(computed, 4), 1 + 3 * 0x1p-52);
  EXPECT_EQ(ulps_up(1.5, 4), 1.5 + 4 * 0x1p-52);
  EXPECT_EQ(ulps_down(1.5, 4), 1.5 - 4 * 0x1p-52);
  EXPECT_EQ(ulps_up(-kMinSubnormal, 3), 2 * kMinSubnormal);
  EXPECT_EQ(ulps_up(kMaxDouble, 2), kInf);
  EXPECT_EQ(ulps_down(kInf, 2), next_down(kMaxDouble));
  EXPECT_TRUE(std::isnan(ulps_up(kNaN, 2)));
}

struct BinaryOperation {
  const char* name;
  double (*down)(double, double);
  double (*up)(double, double);
  reference::Binary exact;
};

constexpr BinaryOperation kBinaryOperations[] = {
    {"add", add_down, add_up, mpfr_add},
    {"sub", sub_down, sub_up, mpfr_sub},
    {"mul", mul_down, mul_up, mpfr_mul},
    {"div", div_down, div_up, mpfr_div},
};

// Exactly rounded outward: equality with the tightest enclosure leaves no room on either side.
void expect_exact(const BinaryOperation& op, double a, double b) {
  if (op.exact == mpfr_div && b == 0) return;
  const Interval want = reference::exact(op.exact, a, b);
  if (same(op.down(a, b), want.lo) && same(op.up(a, b), want.hi)) return;
  ADD_FAILURE() << std::hexfloat << op.name << "(" << a << ", " << b << "): [" << op.down(a, b)
                << ", " << op.up(a, b) << "], exact in [" << want.lo << ", " << want.hi << "]";
}

class RoundingBinary : public testing::TestWithParam<BinaryOperation> {};

TEST_P(RoundingBinary, ExactlyRoundedOnTheExtremeGrid) {
  const std::vector<double> grid = reference::extremes();
  for (const double a : grid) {
    for (const double b : grid) expect_exact(GetParam(), a, b);
  }
}

TEST_P(RoundingBinary, ExactlyRoundedOnRandomOperands) {
  Generator random(101);
  for (std::size_t i = 0; i < samples(1'000'000); ++i) {
    const auto [a, b] = reference::operand_pair(random, i);
    expect_exact(GetParam(), a, b);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RoundingBinary, testing::ValuesIn(kBinaryOperations),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(Rounding, SqrtExactlyRounded) {
  const auto check = [](double a) {
    const Interval want = reference::exact(mpfr_sqrt, a);
    ASSERT_TRUE(same(sqrt_down(a), want.lo) && same(sqrt_up(a), want.hi)) << std::hexfloat << a;
  };
  for (const double a : reference::extremes()) check(a);
  Generator random(102);
  for (std::size_t i = 0; i < samples(500'000); ++i) {
    double a = std::fabs(random.any());
    if (i % 4 == 1) a = random.log_uniform(-1074, -1000);
    if (i % 4 == 2) a = std::ldexp(static_cast<double>(random.below(1 << 20)), -20);
    if (i % 4 == 3) a = std::pow(static_cast<double>(random.below(1 << 26)), 2);
    check(a);
  }
  EXPECT_EQ(sqrt_up(kInf), kInf);
  EXPECT_TRUE(std::isnan(sqrt_up(-1)) && std::isnan(sqrt_down(kNaN)));
}

TEST(Rounding, InfinityNanAndOverflowConventions) {
  EXPECT_TRUE(std::isnan(mul_up(0, kInf)) && std::isnan(mul_down(-kInf, 0)));
  EXPECT_TRUE(std::isnan(add_up(kInf, -kInf)) && std::isnan(sub_down(kInf, kInf)));
  EXPECT_TRUE(std::isnan(div_up(0, 0)) && std::isnan(div_down(kInf, kInf)));
  EXPECT_EQ(add_up(kMaxDouble, kMaxDouble), kInf);
  EXPECT_EQ(add_down(kMaxDouble, kMaxDouble), kMaxDouble);
  EXPECT_EQ(add_up(-kMaxDouble, -kMaxDouble), -kMaxDouble);
  EXPECT_EQ(mul_down(1e300, 1e300), kMaxDouble);
  EXPECT_EQ(mul_up(-1e300, 1e300), -kMaxDouble);
  EXPECT_EQ(mul_up(1e-300, 1e-300), kMinSubnormal);
  EXPECT_EQ(mul_down(1e-300, 1e-300), 0);
  EXPECT_EQ(mul_down(kInf, 2), kInf);
  EXPECT_EQ(add_down(kInf, 1), kInf);
  EXPECT_EQ(add_up(-kInf, 1), -kInf);
  EXPECT_EQ(div_up(1, kInf), 0);
  // Division by zero carries no information, whatever the sign of the zero.
  EXPECT_EQ(div_up(1, -0.0), kInf);
  EXPECT_EQ(div_down(1, 0.0), -kInf);
  for (const double x : {0.0, 1.0, -1.0, kInf, -kInf}) {
    for (const BinaryOperation& op : kBinaryOperations) {
      EXPECT_TRUE(std::isnan(op.up(x, kNaN)) && std::isnan(op.up(kNaN, x))) << op.name;
      EXPECT_TRUE(std::isnan(op.down(x, kNaN)) && std::isnan(op.down(kNaN, x))) << op.name;
    }
  }
}

TEST(Rounding, MaxAndMinKeepNan) {
  EXPECT_TRUE(std::isnan(max_nan(kNaN, 1)) && std::isnan(max_nan(1, kNaN)));
  EXPECT_TRUE(std::isnan(min_nan(kNaN, 1)) && std::isnan(min_nan(1, kNaN)));
  EXPECT_EQ(max_nan(1, 2), 2);
  EXPECT_EQ(min_nan(-kInf, 2), -kInf);
  // A reduction must not lose a NaN wherever it stands.
  for (std::size_t i = 0; i < 19; ++i) {
    std::vector<double> x(19, 1.0);
    x[i] = kNaN;
    EXPECT_TRUE(std::isnan(max_abs(x))) << i;
  }
}

TEST(Rounding, GainProduct) {
  EXPECT_EQ(gain_mul_up(0, kInf), 0);
  EXPECT_EQ(gain_mul_up(kInf, 0), 0);
  EXPECT_EQ(gain_mul_up(kInf, 2), kInf);
  EXPECT_TRUE(std::isnan(gain_mul_up(0, kNaN)) && std::isnan(gain_mul_up(kNaN, 0)));
  EXPECT_EQ(gain_mul_up(0.1, 0.1), mul_up(0.1, 0.1));
  EXPECT_EQ(gain_mul_down(0.1, 0.1), mul_down(0.1, 0.1));
  EXPECT_EQ(gain_mul_up(1e-200, 1e-200), kMinSubnormal);
}

TEST(Rounding, NarrowToFloat) {
  const auto check = [](double x) {
    const float up = narrow_up(x), down = narrow_down(x);
    ASSERT_GE(static_cast<double>(up), x);
    ASSERT_LE(static_cast<double>(down), x);
    const bool exact = static_cast<double>(up) == x;
    ASSERT_EQ(up, exact ? down : std::nextafterf(down, std::numeric_limits<float>::infinity()));
  };
  for (const double x : reference::extremes()) check(x);
  Generator random(103);
  for (std::size_t i = 0; i < samples(500'000); ++i) {
    check(i % 2 == 0 ? random.any() : random.sign() * random.log_uniform(-155, 129));
  }
  EXPECT_EQ(narrow_down(1e300), std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isinf(narrow_up(1e300)) && std::isinf(narrow_down(kInf)));
  EXPECT_TRUE(std::isnan(narrow_up(kNaN)) && std::isnan(narrow_down(kNaN)));
}

// Library functions.

struct Function {
  const char* name;
  double (*down)(double);
  double (*up)(double);
  reference::Unary exact;
  double lo, hi;        // domain, and where the interesting arguments lie
  int max_steps;        // claimed: at most so many doubles from the tightest bound
  std::size_t samples;  // fewer where MPFR is slow
};

constexpr Function kFunctions[] = {
    {"exp", exp_down, exp_up, mpfr_exp, -746, 710, 5, 100'000},
    {"expm1", expm1_down, expm1_up, mpfr_expm1, -746, 710, 5, 100'000},
    {"log", log_down, log_up, mpfr_log, 0, 1e308, 5, 60'000},
    {"log1p", log1p_down, log1p_up, mpfr_log1p, -1, 1e308, 5, 60'000},
    {"log2", log2_down, log2_up, mpfr_log2, 0, 1e308, 5, 60'000},
    {"tanh", tanh_down, tanh_up, mpfr_tanh, -25, 25, 12, 100'000},
    {"sinh", sinh_down, sinh_up, mpfr_sinh, -711, 711, 12, 100'000},
    {"cosh", cosh_down, cosh_up, mpfr_cosh, -711, 711, 12, 100'000},
    {"erf", erf_down, erf_up, mpfr_erf, -7, 7, 8, 25'000},
    {"erfc", erfc_down, erfc_up, mpfr_erfc, -7, 28, 24, 6'000},
    {"sin", sin_down, sin_up, mpfr_sin, -kMaxDouble, kMaxDouble, 5, 100'000},
    {"cos", cos_down, cos_up, mpfr_cos, -kMaxDouble, kMaxDouble, 5, 100'000},
    {"tan", tan_down, tan_up, mpfr_tan, -kMaxDouble, kMaxDouble, 12, 60'000},
    {"atan", atan_down, atan_up, mpfr_atan, -1e6, 1e6, 5, 60'000},
    {"asin", asin_down, asin_up, mpfr_asin, -1, 1, 5, 60'000},
    {"acos", acos_down, acos_up, mpfr_acos, -1, 1, 5, 60'000},
    {"asinh", asinh_down, asinh_up, mpfr_asinh, -1e10, 1e10, 12, 60'000},
    {"acosh", acosh_down, acosh_up, mpfr_acosh, 1, 1e10, 12, 60'000},
    {"atanh", atanh_down, atanh_up, mpfr_atanh, -1, 1, 12, 60'000},
    {"sigmoid", sigmoid_down, sigmoid_up, reference::sigmoid, -746, 746, 10, 60'000},
    {"softplus", softplus_down, softplus_up, reference::softplus, -746, 746, 10, 60'000},
};

double random_argument(const Function& f, Generator& random) {
  for (;;) {
    double x = 0;
    switch (random.below(8)) {
      case 0: x = random.any(); break;
      case 1: x = random.uniform(std::max(f.lo, -1e300), std::min(f.hi, 1e300)); break;
      case 2: x = random.sign() * random.log_uniform(-60, 10); break;
      case 3: x = 1 + random.sign() * random.log_uniform(-52, 1); break;
      case 4: x = random.uniform(-3, 3); break;
      case 5: x = random.sign() * random.log_uniform(-1074, -1000); break;
      case 6: x = random.uniform(std::max(f.lo, -40.0), std::min(f.hi, 40.0)); break;
      default:  // results near a power of two, where ulp change width
        x = std::log(2.0) * static_cast<double>(random.below(40)) +
            random.sign() * random.log_uniform(-60, -45);
    }
    if (x >= f.lo && x <= f.hi) return x;
  }
}

// Arguments at which glibc 2.36 is worst, found by search; also used on any other library.
constexpr double kHardArguments[] = {
    0x1.19c6c660458dcp+9, 0x1.49f33ad2c1c58p+9,  // exp 0.51
    0x1.6f0d4742e25f5p-2,                        // expm1 0.86
    0x1.1211bef8f68e9p+0, 0x1.c613a4600d95cp-1,  // log 0.52
    0x1.2ef38eb1b8c02p-2,                        // log1p 0.85
    0x1.10930635151e1p+0,                        // log2 0.55
    0x1.e0754b877d624p-3,                        // tanh 2.19
    0x1.633c654fee2bap+9, 0x1.64c1cf66cde6bp-1,  // sinh, cosh 1.92
    0x1.c332bde7ca515p-5, 0x1.c349a98e57237p-5,  // erf 1.42
    0x1.3f44aa56898b4p+0, 0x1.39d01cc4cd358p+0,  // erfc 4.35
    0x1.f8b791cafcdefp+4, 0x1.256ef7b7babbfp+2,  // sin, cos 0.52
    0x1.e96371cb0d755p+15,                       // tan 0.59
    0x1.2d97c7f3321d2p+3,                        // tan 0.68
    // Large angles next to a multiple of pi/2: sin, cos, tan wrong by 2 to 1.4e5 ulp.
    0x1.b951f1572eba5p+26, 0x1.69eab0985179bp+246, 0x1.4c96c11134d36p+578, 0x1.6ac5b262ca1ffp+849,
    0x1.b8e6cadb25979p-4, 0x1.7fff3339d99dbp-3,  // atan, asin 0.52
    0x1.ce0a62209631bp-1,                        // acos 0.52
    0x1.02657ff36d5f3p-2, 0x1.0240f2bdb3f25p-2,  // asinh 1.91
    0x1.0001ff6afc4bap+0,                        // acosh 2.24
    0x1.f00967fe08b3ap-4,                        // atanh 1.73
};

class RoundingFunction : public testing::TestWithParam<Function> {};

struct Steps {
  std::int64_t inside = 0;   // how far a bound is on the wrong side; 0 if sound
  std::int64_t outside = 0;  // how far from the tightest bound
};
Steps steps(const Interval& got, const Interval& want) {
  const std::int64_t low = steps_between(got.lo, want.lo), high = steps_between(want.hi, got.hi);
  return {-std::min({low, high, std::int64_t{0}}), std::max({low, high, std::int64_t{0}})};
}

TEST_P(RoundingFunction, NeverInsideAndFewUlpOutside) {
  const Function& f = GetParam();
  Generator random(104);
  std::int64_t worst = 0;
  const bool trigonometric = f.hi == kMaxDouble;
  const auto check = [&](double x) {
    const Interval want = reference::exact(f.exact, x);
    const Interval got{f.down(x), f.up(x)};
    if (std::isnan(want.lo)) {
      ASSERT_TRUE(std::isnan(got.lo) && std::isnan(got.hi)) << std::hexfloat << x;
      return;
    }
    ASSERT_FALSE(std::isnan(got.lo) || std::isnan(got.hi)) << std::hexfloat << x;
    const Steps s = steps(got, want);
    ASSERT_EQ(s.inside, 0) << std::hexfloat << x << ": [" << got.lo << ", " << got.hi
                           << "], exact in [" << want.lo << ", " << want.hi << "]";
    // Large angles carry an absolute slack, which results near a zero or a pole see.
    const double size = std::fabs(want.lo);
    if (trigonometric && std::fabs(x) > kLargeAngle && !(size > 0x1p-15 && size < 0x1p15)) return;
    ASSERT_LE(s.outside, f.max_steps) << std::hexfloat << x;
    worst = std::max(worst, s.outside);
  };
  for (const double x : reference::extremes()) check(x);
  for (const double x : kHardArguments) {
    check(x);
    check(-x);
  }
  for (std::size_t i = 0; i < samples(f.samples) && !HasFatalFailure(); ++i) {
    check(random_argument(f, random));
  }
  std::cout << "  " << f.name << ": never inside, at most " << worst << " doubles outside\n";
}

TEST_P(RoundingFunction, NanStays) {
  EXPECT_TRUE(std::isnan(GetParam().up(kNaN)) && std::isnan(GetParam().down(kNaN)));
}

INSTANTIATE_TEST_SUITE_P(All, RoundingFunction, testing::ValuesIn(kFunctions),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(Rounding, LibraryLimitsAndExactPoints) {
  EXPECT_EQ(exp_up(0), 1);
  EXPECT_EQ(exp_down(0), 1);
  EXPECT_EQ(exp_down(-kInf), 0);
  EXPECT_EQ(exp_up(-kInf), 0);
  EXPECT_EQ(exp_up(-800), 2 * kMinSubnormal);
  EXPECT_EQ(exp_down(-800), 0);
  EXPECT_EQ(exp_up(800), kInf);
  EXPECT_EQ(exp_down(800), next_down(kMaxDouble));
  EXPECT_EQ(exp_down(kInf), kInf);
  EXPECT_EQ(log_up(1), 0);
  EXPECT_EQ(log_up(0), -kInf);
  EXPECT_TRUE(std::isnan(log_up(-1)) && std::isnan(log1p_down(-2)) && std::isnan(acosh_up(0.5)));
  EXPECT_TRUE(std::isnan(asin_up(1.5)) && std::isnan(atanh_down(2)) && std::isnan(sin_up(kInf)));
  EXPECT_EQ(log2_up(8), 3);
  EXPECT_EQ(log2_down(kMinSubnormal), -1074);
  EXPECT_EQ(cos_down(0), 1);
  EXPECT_EQ(tanh_up(0), 0);
  EXPECT_EQ(tanh_down(0), 0);
  for (const double x : {20.0, 1e300, kInf}) {
    EXPECT_EQ(tanh_up(x), 1);
    EXPECT_EQ(erf_up(x), 1);
    EXPECT_EQ(tanh_down(-x), -1);
    EXPECT_EQ(erf_down(-x), -1);
    EXPECT_EQ(erfc_up(-x), 2);
    EXPECT_EQ(sigmoid_up(4 * x), 1);
    EXPECT_LE(tanh_down(x), x == kInf ? 1 : next_down(1));
    EXPECT_LE(sigmoid_down(4 * x), x == kInf ? 1 : next_down(1));
  }
  EXPECT_EQ(sigmoid_down(-kInf), 0);
  EXPECT_EQ(sigmoid_up(-kInf), 0);
  EXPECT_EQ(softplus_up(-kInf), 0);
  EXPECT_EQ(softplus_down(kInf), kInf);
  EXPECT_EQ(atan_up(kInf), kPiUp / 2);
  EXPECT_EQ(atan_down(kInf), kPiDown / 2);
  EXPECT_EQ(atan_up(-kInf), -kPiDown / 2);
  EXPECT_EQ(atanh_up(-1), -kInf);
}

// A step of one ulp is not enough for these functions; the hard arguments above must show it, or
// they would not notice a step that is too small.
TEST(Rounding, OneUlpStepsWouldBeCaught) {
  const std::pair<double (*)(double), reference::Unary> libraries[] = {
      {std::tanh, mpfr_tanh}, {std::erf, mpfr_erf},   {std::erfc, mpfr_erfc},
      {std::sinh, mpfr_sinh}, {std::cosh, mpfr_cosh}, {std::acosh, mpfr_acosh}};
  for (const auto& [library, exact] : libraries) {
    bool caught = false;
    for (const double x : kHardArguments) {
      if (exact == mpfr_acosh && x < 1) continue;
      const double y = library(x);
      if (!std::isfinite(y)) continue;
      caught |= steps({next_down(y), next_up(y)}, reference::exact(exact, x)).inside > 0;
    }
    if (!caught) GTEST_SKIP() << "this C library is within one ulp at the arguments tried";
  }
}

TEST(Rounding, PowNeverInsideAndFewUlpOutside) {
  Generator random(105);
  std::int64_t worst = 0;
  const auto check = [&](double x, double y) {
    if (x == 0 && y < 0) return;
    const Interval want = reference::exact(mpfr_pow, x, y), got{pow_down(x, y), pow_up(x, y)};
    if (std::isnan(want.lo)) {
      ASSERT_TRUE(std::isnan(got.lo) && std::isnan(got.hi));
      return;
    }
    ASSERT_FALSE(std::isnan(got.lo) || std::isnan(got.hi)) << std::hexfloat << x << " " << y;
    const Steps s = steps(got, want);
    ASSERT_EQ(s.inside, 0) << std::hexfloat << x << " ^ " << y;
    ASSERT_LE(s.outside, 5) << std::hexfloat << x << " ^ " << y;
    worst = std::max(worst, s.outside);
  };
  const std::vector<double> grid = reference::extremes();
  for (const double x : grid) {
    for (const double y : grid) check(x, y);
    for (const double y : {-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 1.5, 255.0})
      check(x, y);
  }
  for (std::size_t i = 0; i < samples(80'000); ++i) {
    double x = random.log_uniform(-100, 100), y = random.uniform(-12, 12);
    if (i % 6 == 1) x = 1 + random.sign() * random.log_uniform(-50, -2);
    if (i % 6 == 1) y = random.uniform(-800, 800) / std::fabs(std::log(x));
    if (i % 6 == 2) x = std::fabs(random.any());
    if (i % 6 == 3) x = -random.log_uniform(-20, 20);
    if (i % 6 == 3) y = static_cast<double>(random.below(60)) - 30;
    if (i % 6 == 4) y = random.uniform(-1075, 1024) / std::log2(x + 0.5);
    check(x, y);
  }
  EXPECT_EQ(pow_up(0, -3), kInf);
  EXPECT_EQ(pow_down(0, -3), -kInf);
  EXPECT_TRUE(std::isnan(pow_up(kNaN, 0)) && std::isnan(pow_down(1, kNaN)));
  EXPECT_TRUE(std::isnan(pow_up(-2, 0.3)));
  std::cout << "  pow: never inside, at most " << worst << " doubles outside\n";
}

// Vectors.

constexpr std::size_t kLengths[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 64, 257, 1000};
constexpr std::size_t kKinds = 8;

void expect_encloses(const Interval& got, const Interval& want, const char* what) {
  ASSERT_FALSE(std::isnan(got.lo) || std::isnan(got.hi)) << what;
  ASSERT_LE(got.lo, want.lo) << what;
  ASSERT_GE(got.hi, want.hi) << what;
}

TEST(Rounding, SumsAreNeverInsideAndTight) {
  Generator random(106);
  for (std::size_t round = 0; round < samples(12); ++round) {
    for (const std::size_t n : kLengths) {
      for (std::size_t kind = 0; kind < kKinds; ++kind) {
        const std::vector<double> x = random_vector(random, n, kind);
        ExactSum sum(53), abs_sum(53);
        for (const double v : x) {
          mpfr_set_d(sum.add_term(), v, MPFR_RNDN);
          mpfr_set_d(abs_sum.add_term(), std::fabs(v), MPFR_RNDN);
        }
        Real total(120);
        const Interval want = sum.tightest_sum(total);
        const Interval got{sum_down(x), sum_up(x)};
        expect_encloses(got, want, "sum");
        const Interval want_abs = abs_sum.tightest_sum(total);
        const Interval got_abs{abs_sum_down(x), abs_sum_up(x)};
        expect_encloses(got_abs, want_abs, "abs_sum");
        ASSERT_LE(steps_between(want_abs.hi, got_abs.hi), 2);
        ASSERT_LE(steps_between(got_abs.lo, want_abs.lo), 2);
        if (want_abs.hi > 1e307) continue;
        const double mass = want_abs.hi;
        const double allowed = std::pow(static_cast<double>(n + 8), 2) * 0x1p-104 * mass;
        // The claim: 2 ulp plus a second-order term, also under massive cancellation.
        const double ulps = 0x1p-51 * std::fabs(want.hi) + 2 * kMinSubnormal;
        ASSERT_LE(got.hi - want.hi, allowed + ulps);
        ASSERT_LE(want.lo - got.lo, allowed + ulps);
      }
    }
  }
  EXPECT_EQ(sum_up(std::vector{kInf, 1.0}), kInf);
  EXPECT_TRUE(std::isnan(sum_up(std::vector{kInf, 1.0, -kInf})));
  EXPECT_TRUE(std::isnan(sum_down(std::vector{1.0, kNaN})));
  EXPECT_EQ(abs_sum_up(std::vector{kInf, 1.0, -kInf}), kInf);
  // An overflow on the way costs one step, not the result.
  EXPECT_EQ(sum_down(std::vector{kMaxDouble, kMaxDouble, -kMaxDouble}), next_down(kMaxDouble));
  EXPECT_EQ(sum_down(std::vector{kMaxDouble, kMaxDouble}), kMaxDouble);
}

TEST(Rounding, DotProductsAreNeverInsideAndTight) {
  Generator random(107);
  double worst = 0;
  for (std::size_t round = 0; round < samples(4); ++round) {
    for (const std::size_t n : kLengths) {
      for (std::size_t kind = 0; kind < kKinds * kKinds; ++kind) {
        const std::vector<double> a = random_vector(random, n, kind % kKinds);
        const std::vector<double> b = random_vector(random, n, kind / kKinds);
        ExactSum sum(106), abs_sum(106);
        for (std::size_t i = 0; i < n; ++i) {
          mpfr_ptr term = sum.add_term();
          mpfr_set_d(term, a[i], MPFR_RNDN);
          mpfr_mul_d(term, term, b[i], MPFR_RNDN);
          mpfr_abs(abs_sum.add_term(), term, MPFR_RNDN);
        }
        Real total(120), total_abs(120);
        const Interval want = sum.tightest_sum(total);
        const Interval mass = abs_sum.tightest_sum(total_abs);
        const Interval got = dot_enclosure(a, b);
        expect_encloses(got, want, "dot");
        ASSERT_EQ(got.hi, dot_up(a, b));
        ASSERT_EQ(got.lo, dot_down(a, b));
        if (n == 0 || mass.lo < 1e-280 || mass.hi > 1e300) continue;
        const double unit = static_cast<double>(n + 1) * 0x1p-53 * mass.hi;
        worst = std::max(worst, std::max(got.hi - want.hi, want.lo - got.lo) / unit);
      }
    }
  }
  // Radius n u sum |ab| around a value itself at most that far off, plus a final step.
  EXPECT_LE(worst, 4);
  std::cout << "  dot: never inside, at most " << worst << " (n + 1) u sum |ab| outside\n";

  const Interval entire{-kInf, kInf};
  EXPECT_EQ(dot_enclosure(std::vector{kInf}, std::vector{1.0}), entire);
  EXPECT_TRUE(std::isnan(dot_up(std::vector{kInf}, std::vector{0.0})));
  EXPECT_TRUE(std::isnan(dot_up(std::vector{1.0, kNaN}, std::vector{1.0, 0.0})));
  // Neither overflow nor underflow of the products is visible.
  const Interval cancelled = dot_enclosure(std::vector{1e300, 1e300}, std::vector{1e300, -1e300});
  EXPECT_TRUE(cancelled.lo <= 0 && cancelled.hi >= 0);
  const Interval rescued = dot_enclosure(std::vector{1e300, 1e-300}, std::vector{1e-300, 1e-300});
  EXPECT_NEAR(rescued.lo, 1, 1e-14);
  EXPECT_NEAR(rescued.hi, 1, 1e-14);
  // The largest elements do not meet: their product says nothing about the sum.
  const Interval apart = dot_enclosure(std::vector{1e300, 1e-320}, std::vector{1e-320, 1e-300});
  EXPECT_TRUE(apart.lo > 0 && apart.hi < 1e-19);
  const Interval small =
      dot_enclosure(std::vector{1e300, 0.0, 1e-300}, std::vector{0.0, 1e300, 1e-100});
  EXPECT_TRUE(small.lo <= 0 && small.hi < 1e-300);
}

TEST(Rounding, NormsAreNeverInsideAndTight) {
  Generator random(108);
  double worst = 0;
  const double exponents[] = {1, 1.0000001, 1.5, 2, 3, 7.3, 100, 5000, 1e18, 1e300, kInf};
  for (const std::size_t n : kLengths) {
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      const std::vector<double> x = random_vector(random, n, kind);
      for (const double p : exponents) {
        if (n > 300 && p != 2) continue;
        // 300 bits, so that the reference is exact to well below one ulp.
        Real norm(300), term(300), inverse(300);
        mpfr_set_ui(norm, 0, MPFR_RNDN);
        for (const double v : x) {
          if (p == kInf || p >= 1e18) {  // p >= 1e18: equal to the largest element to 1e-15
            mpfr_set_d(norm, std::max(mpfr_get_d(norm, MPFR_RNDN), std::fabs(v)), MPFR_RNDN);
            continue;
          }
          mpfr_set_d(term, std::fabs(v), MPFR_RNDN);
          mpfr_set_d(inverse, p, MPFR_RNDN);
          mpfr_pow(term, term, inverse, MPFR_RNDN);
          mpfr_add(norm, norm, term, MPFR_RNDN);
        }
        if (p < 1e18) {
          mpfr_set_d(inverse, p, MPFR_RNDN);
          mpfr_ui_div(inverse, 1, inverse, MPFR_RNDN);
          mpfr_pow(norm, norm, inverse, MPFR_RNDN);
          mpfr_prec_round(norm, 250, MPFR_RNDN);  // restores exact results such as a single element
        }
        const Interval want{mpfr_get_d(norm, MPFR_RNDD), mpfr_get_d(norm, MPFR_RNDU)};
        const Interval got{pnorm_down(x, p), pnorm_up(x, p)};
        expect_encloses(got, want, "pnorm");
        if (want.lo < 1e-290 || got.hi > 1e307) continue;
        const double unit = 0x1p-53 * (8 + static_cast<double>(n)) * want.hi;
        worst = std::max(worst, std::max(got.hi - want.hi, want.lo - got.lo) / unit);
      }
      EXPECT_TRUE(n == 0 || std::isnan(pnorm_up(x, 0.5)));
    }
  }
  EXPECT_LE(worst, 2);
  std::cout << "  norms: never inside, at most " << worst << " (n + 8) u relative outside\n";
  EXPECT_TRUE(std::isnan(norm2_up(std::vector{1.0, kNaN})) && std::isnan(pnorm_up({}, kNaN)));
  EXPECT_EQ(norm2_up(std::vector{1.0, -kInf}), kInf);
  EXPECT_NEAR(norm2_up(std::vector{3e300, 4e300}) / 5e300, 1, 1e-14);
  EXPECT_NEAR(norm2_down(std::vector{3e-300, 4e-300}) / 5e-300, 1, 1e-14);
  EXPECT_EQ(norm2_down(std::vector{kMaxDouble, kMaxDouble}), kMaxDouble);
}

TEST(Rounding, FormatIsOutward) {
  EXPECT_EQ(format_up(1.0 / 3, 3), "0.334");
  EXPECT_EQ(format_down(1.0 / 3, 3), "0.333");
  EXPECT_EQ(format_up(-1.0 / 3, 3), "-0.333");
  EXPECT_EQ(format_down(-1.0 / 3, 3), "-0.334");
  EXPECT_EQ(format_up(9.9999, 3), "10");
  EXPECT_EQ(format_up(99950, 3), "1e+05");
  EXPECT_EQ(format_up(0.1, 5), "0.10001");
  EXPECT_EQ(format_down(0.1, 5), "0.1");
  EXPECT_EQ(format_up(2.5, 5), "2.5");
  EXPECT_EQ(format_up(1234567, 4), "1.235e+06");
  EXPECT_EQ(format_down(1200, 6), "1200");
  EXPECT_EQ(format_up(1e-7, 2), "1e-07");
  EXPECT_EQ(format_up(-0.0, 4), "0");
  EXPECT_EQ(format_up(kInf, 4), "inf");
  EXPECT_EQ(format_down(-kInf, 4), "-inf");
  EXPECT_EQ(format_up(kNaN, 4), "nan");
  Generator random(109);
  Real text(4000);
  const auto check = [&](double x, int digits) {
    mpfr_set_str(text, format_up(x, digits).c_str(), 10, MPFR_RNDN);
    ASSERT_GE(mpfr_cmp_d(text, x), 0) << x << " " << digits;
    const double up = mpfr_get_d(text, MPFR_RNDN);
    mpfr_set_str(text, format_down(x, digits).c_str(), 10, MPFR_RNDN);
    ASSERT_LE(mpfr_cmp_d(text, x), 0) << x << " " << digits;
    const double down = mpfr_get_d(text, MPFR_RNDN);
    if (std::fabs(x) < 1e-300 || std::fabs(x) > 1e300) return;
    ASSERT_LE(up - down, std::fabs(x) * (std::pow(10, 1 - digits) * 1.0001 + 0x1p-51));
  };
  for (const double x : reference::extremes()) {
    for (const int digits : {1, 2, 6, 17, 40, 767}) check(x, digits);
  }
  for (std::size_t i = 0; i < samples(4'000); ++i) {
    const int digits = 1 + static_cast<int>(random.below(20));
    check(i % 2 == 0 ? random.any() : random.sign() * random.log_uniform(-20, 20), digits);
  }
}

}  // namespace
}  // namespace lipscope

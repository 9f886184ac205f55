// SPDX-License-Identifier: Apache-2.0
// Wide numbers against MPFR at 600 bits, zero tolerance.
#include "base/wide.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <functional>
#include <random>

#include "base/interval.h"

namespace lipscope {
namespace {

class Reference {
 public:
  Reference() { mpfr_init2(value_, 600); }
  explicit Reference(double x) : Reference() { mpfr_set_d(value_, x, MPFR_RNDN); }
  Reference(const Reference& other) : Reference() { mpfr_set(value_, other.value_, MPFR_RNDN); }
  Reference& operator=(const Reference&) = delete;
  ~Reference() { mpfr_clear(value_); }
  [[nodiscard]] mpfr_ptr get() { return value_; }

  // The middle of a wide number; exact.
  static Reference middle(const Wide& x) {
    Reference sum(0.0), word;
    const bool negative = x.negative();
    const Wide size = negative ? -x : x;
    for (std::size_t i = size.middle().size(); i-- > 0;) {
      mpfr_mul_2ui(sum.value_, sum.value_, 64, MPFR_RNDN);
      mpfr_set_uj(word.value_, size.middle()[i], MPFR_RNDN);
      mpfr_add(sum.value_, sum.value_, word.value_, MPFR_RNDN);
    }
    mpfr_div_2ui(sum.value_, sum.value_, 256, MPFR_RNDN);
    if (negative) mpfr_neg(sum.value_, sum.value_, MPFR_RNDN);
    return sum;
  }

 private:
  mpfr_t value_;
};

// How far the middle is from the true value, as a share of the distance that is claimed.
double share_of_off(const Wide& x, Reference& exact) {
  Reference gap = Reference::middle(x);
  mpfr_sub(gap.get(), gap.get(), exact.get(), MPFR_RNDA);
  mpfr_abs(gap.get(), gap.get(), MPFR_RNDA);
  if (x.off() == 0) return mpfr_zero_p(gap.get()) != 0 ? 0 : kInf;
  mpfr_div_d(gap.get(), gap.get(), x.off(), MPFR_RNDU);
  return mpfr_get_d(gap.get(), MPFR_RNDU);
}

struct WideFunction {
  const char* name;
  std::function<Wide(const Wide&)> wide;
  std::function<void(mpfr_ptr, mpfr_srcptr)> exact;
  double low, high;
  double off;  // at most, for a point
};

std::vector<WideFunction> wide_functions() {
  const auto plain = [](int (*f)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t)) {
    return [f](mpfr_ptr y, mpfr_srcptr x) { f(y, x, MPFR_RNDN); };
  };
  const auto density = [](mpfr_ptr y, mpfr_srcptr x) {
    Reference two_pi(0.0);
    mpfr_const_pi(two_pi.get(), MPFR_RNDN);
    mpfr_mul_ui(two_pi.get(), two_pi.get(), 2, MPFR_RNDN);
    mpfr_sqr(y, x, MPFR_RNDN);
    mpfr_div_si(y, y, -2, MPFR_RNDN);
    mpfr_exp(y, y, MPFR_RNDN);
    mpfr_sqrt(two_pi.get(), two_pi.get(), MPFR_RNDN);
    mpfr_div(y, y, two_pi.get(), MPFR_RNDN);
  };
  const auto below = [](mpfr_ptr y, mpfr_srcptr x) {
    Reference root(2.0);
    mpfr_sqrt(root.get(), root.get(), MPFR_RNDN);
    mpfr_div(y, x, root.get(), MPFR_RNDN);
    mpfr_neg(y, y, MPFR_RNDN);
    mpfr_erfc(y, y, MPFR_RNDN);
    mpfr_div_ui(y, y, 2, MPFR_RNDN);
  };
  const auto logistic = [](mpfr_ptr y, mpfr_srcptr x) {
    mpfr_neg(y, x, MPFR_RNDN);
    mpfr_exp(y, y, MPFR_RNDN);
    mpfr_add_ui(y, y, 1, MPFR_RNDN);
    mpfr_ui_div(y, 1, y, MPFR_RNDN);
  };
  using F = const Wide&;
  return {
      {"exp", [](F x) { return exp(x); }, plain(mpfr_exp), -210, 3, 0x1p-235},
      {"tanh", [](F x) { return tanh(x); }, plain(mpfr_tanh), -30, 30, 0x1p-240},
      {"sigmoid", [](F x) { return sigmoid(x); }, logistic, -60, 60, 0x1p-240},
      {"sin", [](F x) { return sin(x); }, plain(mpfr_sin), -300, 300, 0x1p-230},
      {"cos", [](F x) { return cos(x); }, plain(mpfr_cos), -300, 300, 0x1p-230},
      {"density", [](F x) { return normal_share(x).density; }, density, -21, 21, 0x1p-240},
      {"below", [](F x) { return normal_share(x).below; }, below, -21, 21, 0x1p-235},
      {"sqrt", [](F x) { return sqrt(x); }, plain(mpfr_sqrt), 1e-9, 1e3, 0x1p-230},
      {"inverse sqrt", [](F x) { return inverse_sqrt(x); },
       [](mpfr_ptr y, mpfr_srcptr x) { mpfr_rec_sqrt(y, x, MPFR_RNDN); }, 1e-3, 1e3, 0x1p-235},
      {"inverse", [](F x) { return Wide(1) / x; },
       [](mpfr_ptr y, mpfr_srcptr x) { mpfr_ui_div(y, 1, x, MPFR_RNDN); }, 1e-3, 1e3, 0x1p-230}};
}

TEST(Wide, FunctionsHoldTheTrueValue) {
  std::mt19937_64 rng(20261116);
  for (const WideFunction& f : wide_functions()) {
    std::uniform_real_distribution<double> anywhere(f.low, f.high), nearby(-1e-3, 1e-3);
    for (int trial = 0; trial < 300; ++trial) {
      double x = anywhere(rng);
      if (trial % 7 == 0 && f.low < 0) x = nearby(rng);
      const Wide y = f.wide(Wide(x));
      Reference at(x), exact(0.0);
      f.exact(exact.get(), at.get());
      EXPECT_LE(share_of_off(y, exact), 1) << f.name << " of " << x;
      EXPECT_LE(y.off(), f.off) << f.name << " of " << x;
    }
  }
}

// A distance of the argument is in that of the value.
TEST(Wide, FunctionsHoldTheValuesAround) {
  std::mt19937_64 rng(7);
  for (const WideFunction& f : wide_functions()) {
    std::uniform_real_distribution<double> anywhere(f.low, f.high), share(-1, 1);
    for (int trial = 0; trial < 200; ++trial) {
      const double x = anywhere(rng), off = std::ldexp(1.0, -static_cast<int>(rng() % 80) - 12);
      const Wide y = f.wide(Wide(x).widened(off));
      if (!y.known()) continue;
      Reference at(x), step(off * share(rng)), exact(0.0);
      mpfr_add(at.get(), at.get(), step.get(), MPFR_RNDN);
      if (mpfr_cmp_d(at.get(), f.low) < 0 && f.low > 0) continue;
      f.exact(exact.get(), at.get());
      EXPECT_LE(share_of_off(y, exact), 1) << f.name << " of " << x << " within " << off;
    }
  }
}

TEST(Wide, ArithmeticHoldsTheTrueValue) {
  std::mt19937_64 rng(5);
  std::uniform_real_distribution<double> mantissa(-1, 1);
  const auto number = [&] { return std::ldexp(mantissa(rng), static_cast<int>(rng() % 60) - 30); };
  for (int trial = 0; trial < 2000; ++trial) {
    const double a = number(), b = number(), c = number();
    const std::uint64_t n = rng() % 1000 + 1;
    const int shift = static_cast<int>(rng() % 200) - 190;
    Reference x(a), y(b), z(c), exact(0.0);
    // (a b + c) / n, scaled.
    mpfr_mul(exact.get(), x.get(), y.get(), MPFR_RNDN);
    mpfr_add(exact.get(), exact.get(), z.get(), MPFR_RNDN);
    mpfr_div_ui(exact.get(), exact.get(), n, MPFR_RNDN);
    mpfr_mul_2si(exact.get(), exact.get(), shift, MPFR_RNDN);
    const Wide found = scaled(over(Wide(a) * Wide(b) + Wide(c), n), shift);
    if (!found.known()) continue;
    EXPECT_LE(share_of_off(found, exact), 1) << a << " " << b << " " << c << " " << n;
    EXPECT_LE(found.off(), 0x1p-244);
    // Doubles on both sides.
    const Interval both = hull(found);
    EXPECT_LE(mpfr_cmp_d(Reference(both.lo).get(), mpfr_get_d(exact.get(), MPFR_RNDU)), 0);
    EXPECT_GE(mpfr_cmp_d(Reference(both.hi).get(), mpfr_get_d(exact.get(), MPFR_RNDD)), 0);
    EXPECT_GE(found.size_up(), std::fabs(mpfr_get_d(exact.get(), MPFR_RNDZ)) - found.off());
  }
}

TEST(Wide, WhatDoesNotFitIsNotKnown) {
  EXPECT_FALSE(Wide(kInf).known());
  EXPECT_FALSE(Wide(kNaN).known());
  EXPECT_FALSE(Wide(0x1p62).known());
  EXPECT_TRUE(Wide(-0x1.8p61).known());
  EXPECT_FALSE((Wide(0x1p40) * Wide(0x1p40)).known());
  EXPECT_FALSE((Wide(0x1p61) + Wide(0x1p61) + Wide(0x1p61) + Wide(0x1p61)).known());
  EXPECT_FALSE(scaled(Wide(1), 70).known());
  EXPECT_TRUE(scaled(Wide(1), 61).known());
  EXPECT_FALSE(exp(Wide(50)).known());
  EXPECT_FALSE((Wide(1) / Wide(0)).known());
  EXPECT_FALSE((Wide(1) / Wide(1).widened(2)).known());
  EXPECT_FALSE((Wide(0) / Wide(0)).known());
  EXPECT_FALSE(inverse_sqrt(Wide(-1)).known());
  EXPECT_FALSE((Wide(0) * Wide::unknown()).known());
  EXPECT_FALSE(Wide::around({0, kInf}).known());
  EXPECT_EQ(hull(Wide::unknown()), kEntire);
  // What lies below the unit is in the distance.
  EXPECT_GT(Wide(0x1p-300).off(), 0);
  EXPECT_EQ(Wide(0x1p-200).off(), 0);
}

TEST(Wide, AnIntervalIsInsideItsNumber) {
  std::mt19937_64 rng(3);
  std::uniform_real_distribution<double> anywhere(-5, 5);
  for (int trial = 0; trial < 1000; ++trial) {
    const double a = anywhere(rng), b = anywhere(rng);
    const Interval x{std::min(a, b), std::max(a, b)};
    EXPECT_TRUE(contains(hull(Wide::around(x)), x));
  }
}

// Digits of a number times those of one give it back.
TEST(Wide, DigitsAndBack) {
  std::mt19937_64 rng(9);
  std::uniform_real_distribution<double> mantissa(-1, 1);
  for (int trial = 0; trial < 1000; ++trial) {
    const Wide x = Wide(std::ldexp(mantissa(rng), static_cast<int>(rng() % 90) - 40)) +
                   Wide(std::ldexp(mantissa(rng), -static_cast<int>(rng() % 200)));
    std::array<double, kWideDigits> digits{}, one{};
    to_digits(x, digits.data(), 1);
    to_digits(Wide(1), one.data(), 1);
    std::array<std::int64_t, 2 * kWideDigits - 1> sums{};
    for (std::size_t i = 0; i < kWideDigits; ++i) {
      EXPECT_LE(std::fabs(digits[i]), 0x1p19);
      for (std::size_t j = 0; j < kWideDigits; ++j)
        sums[i + j] += static_cast<std::int64_t>(digits[i] * one[j]);
    }
    const Wide back = from_digit_sums(sums, 0) - Wide(x.middle(), 0);
    EXPECT_LE(back.size_up(), Wide::kUnit) << trial;
  }
  std::array<std::int64_t, 2 * kWideDigits - 1> large{};
  large[29] = 1;
  EXPECT_FALSE(from_digit_sums(large, 0).known());
  large[29] = 0;
  large[28] = 1 << 15;
  EXPECT_FALSE(from_digit_sums(large, 0).known());
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "base/rational.h"

#include <gtest/gtest.h>

#include <random>

namespace lipscope {
namespace {

using Rng = std::mt19937_64;

Rational whole(std::int64_t n) { return BigInteger(n); }

// Doubles of all sizes, subnormal ones among them.
double any_double(Rng& rng) {
  const double size = std::ldexp(std::uniform_real_distribution<double>(0.5, 1)(rng),
                                 std::uniform_int_distribution<int>(-1074, 1024)(rng));
  return rng() % 2 == 0 ? size : -size;
}

BigInteger any_integer(Rng& rng) {
  BigInteger x = static_cast<std::int64_t>(rng());
  for (std::uint64_t i = rng() % 6; i > 0; --i) {
    // Runs of zeros and ones are where the guesses of a division go wrong.
    const std::int64_t word = rng() % 3 == 0 ? 0 : rng() % 2 == 0 ? -1 : 1;
    x = (x << static_cast<std::int64_t>(rng() % 70)) + BigInteger(word);
  }
  return x;
}

TEST(BigInteger, QuotientAndRemainderGiveTheNumberBack) {
  Rng rng(1);
  for (int i = 0; i < 20000; ++i) {
    const BigInteger a = any_integer(rng), b = any_integer(rng);
    if (b.is_zero()) continue;
    const auto [q, r] = BigInteger::divide(a, b);
    EXPECT_EQ(q * b + r, a);
    EXPECT_TRUE(b.negative() ? r <= 0 && b < r : r >= 0 && r < b);
    EXPECT_EQ(BigInteger::divide(a * b, b).quotient, a);
  }
}

TEST(BigInteger, ShiftsAndOrder) {
  const BigInteger one = 1;
  EXPECT_EQ((one << 100) >> 99, 2);
  EXPECT_EQ((one << 100).trailing_zeros(), 100);
  EXPECT_EQ((one << 100).bits(), 101);
  EXPECT_LT(-(one << 100), BigInteger(INT64_MIN));
  EXPECT_EQ(BigInteger(INT64_MIN).low_bits(), std::uint64_t{1} << 63);
  EXPECT_EQ(gcd((one << 80) * 21, -((one << 75) * 35)), (one << 75) * 7);
}

TEST(Rational, DoublesAreThemselves) {
  Rng rng(2);
  for (int i = 0; i < 5000; ++i) {
    const double x = any_double(rng);
    EXPECT_EQ(Rational(x).hull(), point(x));
  }
  for (const double x : {0.0, kMinSubnormal, -kMinSubnormal, kMaxDouble, 1.5, -3.0})
    EXPECT_EQ(Rational(x).hull(), point(x));
}

TEST(Rational, HullsAreTheDoublesNextToANumber) {
  EXPECT_EQ((whole(1) / whole(3)).hull(), (Interval{div_down(1, 3), div_up(1, 3)}));
  EXPECT_EQ((whole(-1) / whole(3)).hull(), (Interval{div_down(-1, 3), div_up(-1, 3)}));
  EXPECT_EQ((Rational(kMinSubnormal) / whole(2)).hull(), (Interval{0, kMinSubnormal}));
  EXPECT_EQ((Rational(kMinSubnormal) * Rational(1.25)).hull(),
            (Interval{kMinSubnormal, 2 * kMinSubnormal}));
  EXPECT_EQ((Rational(-kMaxDouble) * whole(3)).hull(), (Interval{-kInf, -kMaxDouble}));
  EXPECT_EQ((Rational(kMaxDouble) + Rational(1e-300)).hull(), (Interval{kMaxDouble, kInf}));
  const Rational tiny(0x1p-1000);
  EXPECT_EQ((tiny * tiny).hull(), (Interval{0, kMinSubnormal}));
  EXPECT_EQ((whole(1) + tiny).hull(), (Interval{1, next_up(1)}));
}

TEST(Rational, ArithmeticIsExact) {
  EXPECT_EQ(whole(1) / whole(3) * whole(3), whole(1));
  EXPECT_EQ(whole(1) / whole(3) + whole(1) / whole(6), Rational(0.5));
  EXPECT_GT(whole(1) + Rational(0x1p-1074), whole(1));
  EXPECT_EQ(Rational(0.1) - Rational(0.1), Rational());
  EXPECT_LT(whole(-7) / whole(2), whole(-3));
}

TEST(Rational, WholeNumbersNextToIt) {
  const Rational x = whole(-7) / whole(2), just = whole(2) - Rational(0x1p-60);
  EXPECT_EQ(x.floor(), -4);
  EXPECT_EQ(ceil(x), -3);
  EXPECT_EQ(trunc(x), -3);
  EXPECT_EQ(trunc(just), 1);
  EXPECT_EQ(ceil(just), 2);
  EXPECT_EQ(nearest_even(Rational(2.5)), 2);
  EXPECT_EQ(nearest_even(Rational(3.5)), 4);
  EXPECT_EQ(nearest_even(Rational(-2.5)), -2);
  EXPECT_EQ(nearest_even(Rational(2.5) + Rational(0x1p-70)), 3);
  EXPECT_EQ(nearest_even(Rational(2.5) - Rational(0x1p-70)), 2);
  EXPECT_TRUE(whole(4).is_integer());
  EXPECT_FALSE(just.is_integer());
}

TEST(RationalInterval, HoldsWhatIntervalsOfDoublesHold) {
  Rng rng(3);
  const auto any = [&] {
    const double a = any_double(rng), b = a + std::fabs(a) * 1e-3;
    return Interval{a, std::isfinite(b) ? b : a};
  };
  for (int i = 0; i < 3000; ++i) {
    const Interval x = any(), y = any();
    const RationalInterval p(x), q(y);
    EXPECT_TRUE(contains(x + y, (p + q).hull()));
    EXPECT_TRUE(contains(x - y, (p - q).hull()));
    EXPECT_TRUE(contains(x * y, (p * q).hull()));
    EXPECT_TRUE(contains(x / y, (p / q).hull()));
    EXPECT_EQ(abs(p).hull(), abs(x));
    EXPECT_EQ(max(p, q).hull(), max(x, y));
    EXPECT_EQ(min(p, q).hull(), min(x, y));
  }
}

TEST(RationalInterval, WhatIsNotKnownStaysSo) {
  const RationalInterval none = RationalInterval::unknown(), one(1.0), around(Interval{-1, 1});
  EXPECT_FALSE((none + one).known());
  EXPECT_FALSE((one / around).known());
  EXPECT_FALSE((one / RationalInterval(0.0)).known());
  EXPECT_TRUE((none * RationalInterval(0.0)).is(Rational()));
  EXPECT_FALSE(RationalInterval(kInf).known());
  EXPECT_EQ(around.number(), nullptr);
  RationalInterval large(3.0);
  for (int i = 0; i < 20; ++i) large = large * large;
  EXPECT_FALSE(large.known());
  EXPECT_EQ(large.hull(), kEntire);
}

}  // namespace
}  // namespace lipscope

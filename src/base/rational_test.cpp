// SPDX-License-Identifier: Apache-2.0
#include "base/rational.h"

#include <gtest/gtest.h>

#include <random>

#include "lipscope/error.h"

namespace lipscope {
namespace {

TEST(RationalNumbers, AreExact) {
  const Rational third = Rational(1) / 3;
  EXPECT_EQ(third + third + third, Rational(1));
  EXPECT_EQ(Rational(0.1) * 10 == Rational(1), false);
  EXPECT_EQ(Rational(-0.75), Rational(-3) / 4);
  EXPECT_LT(Rational(0.1), Rational(1) / 10 + Rational(1) / 1000000000);
  EXPECT_GT(Rational(0.1), Rational(1) / 10);
  EXPECT_EQ((Rational(-7) / 2).floor(), -4);
  EXPECT_EQ((Rational(-7) / 2).ceil(), -3);
  EXPECT_EQ(Rational(5).floor(), 5);
  EXPECT_EQ(Rational(5).ceil(), 5);
  EXPECT_EQ(abs(Rational(-5) / 3), Rational(5) / 3);
}

TEST(RationalNumbers, AreEnclosedTightly) {
  EXPECT_EQ((Rational(3) / 8).enclosed(), (Interval{0.375, 0.375}));
  EXPECT_EQ(Rational(0x1p100).enclosed(), (Interval{0x1p100, 0x1p100}));
  const Interval third = (Rational(1) / 3).enclosed();
  EXPECT_LT(Rational(third.lo), Rational(1) / 3);
  EXPECT_GT(Rational(third.hi), Rational(1) / 3);
  EXPECT_EQ(third.hi, next_up(third.lo));
  std::mt19937_64 rng(3);
  std::uniform_int_distribution<std::int64_t> any(1, std::int64_t{1} << 30);
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t over = any(rng), under = any(rng);
    const Interval around = (Rational(over) / under).enclosed();
    EXPECT_LE(mul_down(around.lo, static_cast<double>(under)), static_cast<double>(over));
    EXPECT_GE(mul_up(around.hi, static_cast<double>(under)), static_cast<double>(over));
    EXPECT_LE(around.hi, next_up(around.lo));
  }
}

TEST(RationalNumbers, RefuseWhatIsTooLong) {
  const Rational small(0x1p-100);
  EXPECT_THROW((void)(small * small), Error);
  EXPECT_THROW((void)Rational(0x1p-1074), Error);
  EXPECT_THROW((void)(small + Rational(1) / 3 * Rational(0x1p100)), Error);
  EXPECT_THROW((void)Rational(0x1p100).floor(), Error);
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "robust/radius_search.h"

#include <gtest/gtest.h>

namespace lipscope {
namespace {

double first_eighth(const RadiusRange& range) { return geometric_middle_of(range, 0.125); }

TEST(RadiusSearch, EndsAroundTheLargestRadius) {
  for (const double largest : {1e-3, 0.4, 0.99}) {
    RadiusRange range{0, 1};
    int tries = 0;
    narrow_radius(
        range, 100, 1.03, first_eighth,
        [&](double radius) {
          ++tries;
          return radius <= largest ? radius : 0;
        },
        [] { return false; });
    EXPECT_LE(range.low, largest);
    EXPECT_GE(range.high, largest);
    EXPECT_LE(range.high, 1.03 * range.low);
    EXPECT_LT(tries, 12);
  }
}

TEST(RadiusSearch, KeepsWhatAFailureProves) {
  RadiusRange range{0.1, 1};
  narrow_radius(
      range, 1, 1.03, middle_of, [](double) { return 0.3; }, [] { return false; });
  EXPECT_EQ(range.low, 0.3);
  EXPECT_EQ(range.high, 0.55);
}

TEST(RadiusSearch, TriesNoMoreThanItMay) {
  int tries = 0;
  const auto fail = [&](double) {
    ++tries;
    return 0.0;
  };
  RadiusRange range{0.1, 1};
  narrow_radius(range, 3, 1.03, middle_of, fail, [] { return false; });
  EXPECT_EQ(tries, 3);
  narrow_radius(range, 3, 1.03, middle_of, fail, [] { return true; });
  EXPECT_EQ(tries, 3);
  RadiusRange none{0, 0};  // nothing in between
  narrow_radius(none, 3, 1.03, middle_of, fail, [] { return false; });
  RadiusRange outside{0.1, 1};
  narrow_radius(
      outside, 3, 1.03, [](const RadiusRange&) { return 2.0; }, fail, [] { return false; });
  EXPECT_EQ(tries, 3);
  EXPECT_EQ(outside.high, 1);
}

}  // namespace
}  // namespace lipscope

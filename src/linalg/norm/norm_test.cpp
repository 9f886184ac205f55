// SPDX-License-Identifier: Apache-2.0
#include "lipscope/norm.h"

#include <gtest/gtest.h>

#include "lipscope/error.h"

namespace lipscope {
namespace {

std::optional<Bound> bound(double value, Guarantee guarantee) {
  return Bound{value, guarantee, "test"};
}

TEST(Uncross, TheWeakerEndGivesWay) {
  auto lower = bound(1.7e-16, Guarantee::kReal), upper = bound(0, Guarantee::kProved);
  uncross(lower, upper);
  EXPECT_EQ(lower->value, 0);
  EXPECT_EQ(upper->value, 0);
  lower = bound(2, Guarantee::kProved), upper = bound(1, Guarantee::kEstimate);
  uncross(lower, upper);
  EXPECT_EQ(lower->value, 2);
  EXPECT_EQ(upper->value, 2);
}

TEST(Uncross, ABracketStaysAsItIs) {
  auto lower = bound(1, Guarantee::kReal), upper = bound(2, Guarantee::kReal);
  uncross(lower, upper);
  EXPECT_EQ(lower->value, 1);
  EXPECT_EQ(upper->value, 2);
  std::optional<Bound> none;
  uncross(none, upper);
  uncross(lower, none);
  EXPECT_FALSE(none);
}

TEST(Uncross, TwoProofsThatCrossAreADefect) {
  auto lower = bound(2, Guarantee::kProved), upper = bound(1, Guarantee::kProved);
  EXPECT_THROW(uncross(lower, upper), Error);
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "lipscope/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lipscope/error.h"
#include "lipscope/norm.h"

namespace lipscope {
namespace {

TEST(ElementCount, HandlesScalarsEmptyAndOverflow) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({2, 3}), 6);
  EXPECT_EQ(element_count({5, 0, 7}), 0);
  EXPECT_THROW((void)element_count({-1}), Error);
  EXPECT_THROW((void)element_count({Index{1} << 40, Index{1} << 40}), Error);
}

TEST(WrapInteger, FollowsTheWidthOfTheType) {
  EXPECT_EQ(wrap_integer(ElementType::kInt8, 200), -56);
  EXPECT_EQ(wrap_integer(ElementType::kUInt8, -1), 255);
  EXPECT_EQ(wrap_integer(ElementType::kUInt16, 65536), 0);
  EXPECT_EQ(wrap_integer(ElementType::kInt32, Index{1} << 31),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(wrap_integer(ElementType::kBool, 7), 1);
}

TEST(RoundTo, Float16GridAndOverflow) {
  const auto f16 = [](double x) { return round_to(ElementType::kFloat16, x); };
  EXPECT_EQ(f16(1.0), 1.0);
  EXPECT_EQ(f16(1 + 0x1p-11), 1.0);             // tie to even
  EXPECT_EQ(f16(1 + 3 * 0x1p-11), 1 + 0x1p-9);  // tie to even, upwards
  EXPECT_EQ(f16(65504.0), 65504.0);
  EXPECT_EQ(f16(65520.0), HUGE_VAL);
  EXPECT_EQ(f16(-1e9), -HUGE_VAL);
  EXPECT_EQ(f16(0x1p-24), 0x1p-24);  // smallest subnormal
  EXPECT_EQ(f16(0x1p-26), 0.0);
  EXPECT_TRUE(std::isnan(f16(NAN)));
}

TEST(RoundTo, BFloat16AgreesWithTruncatedFloatBits) {
  EXPECT_EQ(round_to(ElementType::kBFloat16, 1 + 0x1p-7), 1 + 0x1p-7);
  EXPECT_EQ(round_to(ElementType::kBFloat16, 1 + 0x1p-8), 1.0);
  EXPECT_EQ(round_to(ElementType::kBFloat16, 3.4e38), HUGE_VAL);
}

TEST(Tensor, CastTruncatesAndWraps) {
  const Tensor t = Tensor::vector({1.9, -1.9, 300, NAN});
  const Tensor i = t.cast(ElementType::kUInt8);
  EXPECT_EQ(i.ints()[0], 1);
  EXPECT_EQ(i.ints()[1], 255);
  EXPECT_EQ(i.ints()[2], 44);
  const Tensor b = Tensor::vector({0, 0.25, -2}).cast(ElementType::kBool);
  EXPECT_EQ(b.ints()[0], 0);
  EXPECT_EQ(b.ints()[1], 1);
  EXPECT_EQ(t.cast(ElementType::kFloat16).at(0), 1.9);  // real numbers stay what they are
}

TEST(Tensor, UInt64IsReadUnsigned) {
  const Tensor t(ElementType::kUInt64, {1}, std::vector<Index>{-1});
  EXPECT_EQ(t.at(0), 0x1p64);
  EXPECT_EQ(Tensor::vector({0x1p63}).cast(ElementType::kUInt64).ints()[0],
            std::numeric_limits<Index>::min());
}

TEST(Tensor, RefusesAWrongEntryCountAndAWrongStorage) {
  EXPECT_THROW(Tensor(ElementType::kFloat32, {3}, std::vector<double>(2)), Error);
  EXPECT_THROW((void)Tensor::vector({1}).ints(), Error);
  EXPECT_THROW((void)Tensor::vector({1, 2}).reshaped({3}), Error);
}

TEST(Tensor, PrecisionRoundTripKeepsFloat32Values) {
  const Tensor t(ElementType::kFloat32, {2}, std::vector<double>{0.1F, 3});
  EXPECT_EQ(t.with_precision(Precision::kFloat32).with_precision(Precision::kFloat64), t);
}

TEST(Norm, ParsesAndNames) {
  EXPECT_EQ(parse_norms("2").name(), "2:2");
  EXPECT_EQ(parse_norms("1:inf").name(), "1:inf");
  EXPECT_EQ(parse_norms("3:1.5").name(), "3:1.5");
  EXPECT_EQ(parse_norms("inf").in.dual().p(), 1);
  for (const char* bad : {"", "2:", ":2", "0.5", "-1", "nan", "two", "2:2:2", "2 "}) {
    EXPECT_THROW((void)parse_norms(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace lipscope

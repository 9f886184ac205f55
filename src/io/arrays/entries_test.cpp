// SPDX-License-Identifier: Apache-2.0
#include "io/arrays/entries.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "io/arrays/test_bytes.h"

namespace lipscope {
namespace {

using testing::bytes_of;
using testing::expect_error;
using testing::operator+;

TEST(Printable, EscapesWhatWouldBreakTheLineAndCutsWhatIsLong) {
  EXPECT_EQ(printable("plain text"), "plain text");
  EXPECT_EQ(printable("a\nb\x1b\xff"), "a\\x0ab\\x1b\\xff");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(in_quotes("x"), "'x'");
}

TEST(ByteReader, RefusesToReadPastTheEnd) {
  const auto bytes = bytes_of({1, 2, 3});
  ByteReader reader(bytes, "file", "header");
  EXPECT_EQ(reader.number<std::uint16_t>(), 0x0201);
  EXPECT_EQ(reader.remaining(), 1U);
  expect_error([&] { (void)reader.number<std::uint16_t>(); }, ErrorCode::kBadFile,
               "file: truncated header");
  expect_error([&] { reader.take(~std::uint64_t{0}); }, ErrorCode::kBadFile, "truncated");
  EXPECT_EQ(reader.number<std::uint8_t>(), 3);
}

TEST(Entries, Float16HasTheValuesOfTheStandard) {
  EXPECT_EQ(float16_value(0x3c00), 1.0);
  EXPECT_EQ(float16_value(0xc000), -2.0);
  EXPECT_EQ(float16_value(0x7bff), 65504.0);
  EXPECT_EQ(float16_value(0x0400), std::ldexp(1.0, -14));
  EXPECT_EQ(float16_value(0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(float16_value(0x7c00), std::numeric_limits<double>::infinity());
  EXPECT_EQ(float16_value(0xfc00), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(float16_value(0x7e00)));
  EXPECT_TRUE(std::signbit(float16_value(0x8000)));
}

TEST(Entries, BFloat16IsTheUpperHalfOfAFloat) {
  EXPECT_EQ(bfloat16_value(0x3f80), 1.0);
  EXPECT_EQ(bfloat16_value(0xc040), -3.0);
  EXPECT_EQ(bfloat16_value(0x0001), std::ldexp(1.0, -133));
  EXPECT_TRUE(std::isnan(bfloat16_value(0x7fc0)));
}

TEST(Entries, EveryHalfPatternSurvivesDecodingAndEncoding) {
  for (const ElementType type : {ElementType::kFloat16, ElementType::kBFloat16}) {
    testing::Buffer all;
    for (int bits = 0; bits < 65536; ++bits) all = std::move(all) + bytes_of({bits, bits / 256});
    const Tensor tensor = decode_entries(all, type, {65536}, std::endian::little);
    const testing::Buffer again = encode_entries(tensor);
    ASSERT_EQ(again.size(), all.size());
    for (std::size_t i = 0; i < 65536; ++i) {
      if (std::isnan(tensor.doubles()[i])) continue;
      ASSERT_EQ(load<std::uint16_t>(&again[2 * i], std::endian::little), i) << to_string(type);
    }
  }
}

TEST(Entries, EncodingRoundsToTheElementType) {
  const Tensor halves(ElementType::kFloat16, {3}, std::vector<double>{1.0 + 0x1p-12, 1e6, -1e-9});
  const Tensor again =
      decode_entries(encode_entries(halves), ElementType::kFloat16, {3}, std::endian::little);
  EXPECT_EQ(again.at(0), 1.0);
  EXPECT_EQ(again.at(1), std::numeric_limits<double>::infinity());
  EXPECT_EQ(again.at(2), 0.0);
}

TEST(Entries, BothByteOrdersAndBothLayoutsAreRead) {
  const auto little = bytes_of({1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0});
  const auto big = bytes_of({0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6});
  const Tensor rows(ElementType::kInt16, {2, 3}, std::vector<Index>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(decode_entries(little, ElementType::kInt16, {2, 3}, std::endian::little), rows);
  EXPECT_EQ(decode_entries(big, ElementType::kInt16, {2, 3}, std::endian::big), rows);
  const Tensor columns(ElementType::kInt16, {2, 3}, std::vector<Index>{1, 3, 5, 2, 4, 6});
  EXPECT_EQ(decode_entries(little, ElementType::kInt16, {2, 3}, std::endian::little,
                           Layout::kColumnMajor),
            columns);
}

TEST(Entries, ColumnMajorOfThreeDimensionsFollowsTheIndexFormula) {
  const Shape shape = {2, 3, 4};
  testing::Buffer data;
  for (int i = 0; i < 24; ++i) data.push_back(static_cast<std::byte>(i));
  const Tensor tensor =
      decode_entries(data, ElementType::kUInt8, shape, std::endian::little, Layout::kColumnMajor);
  for (Index i = 0; i < 2; ++i) {
    for (Index j = 0; j < 3; ++j) {
      for (Index k = 0; k < 4; ++k) {
        EXPECT_EQ(tensor.at((i * 3 + j) * 4 + k), static_cast<double>(i + 2 * j + 6 * k));
      }
    }
  }
}

TEST(Entries, BoolIsZeroOrOneWhateverTheByte) {
  const Tensor tensor =
      decode_entries(bytes_of({0, 1, 7, 255}), ElementType::kBool, {4}, std::endian::little);
  EXPECT_EQ(tensor, Tensor(ElementType::kBool, {4}, std::vector<Index>{0, 1, 1, 1}));
}

TEST(Entries, UInt64KeepsItsBits) {
  const Tensor tensor = decode_entries(bytes_of({255, 255, 255, 255, 255, 255, 255, 255}),
                                       ElementType::kUInt64, {1}, std::endian::little);
  EXPECT_EQ(tensor.ints()[0], -1);
  EXPECT_EQ(tensor.at(0), 0x1p64);
}

TEST(Entries, FloatStorageIsEncodedLikeDoubleStorage) {
  const Tensor tensor(ElementType::kFloat32, {2}, std::vector<double>{0.1f, -3.0});
  EXPECT_EQ(encode_entries(tensor.with_precision(Precision::kFloat32)), encode_entries(tensor));
}

TEST(Entries, SizesThatOverflowAreNotComputed) {
  const Index big = Index{1} << 62;
  EXPECT_EQ(packed_bytes(ElementType::kFloat32, {2, 3}), 24U);
  EXPECT_EQ(packed_bytes(ElementType::kFloat32, {}), 4U);
  EXPECT_EQ(packed_bytes(ElementType::kFloat32, {0, 7}), 0U);
  EXPECT_FALSE(packed_bytes(ElementType::kFloat32, {big, 4}));
  EXPECT_FALSE(packed_bytes(ElementType::kUInt8, {big, big, 0}));
  EXPECT_FALSE(packed_bytes(ElementType::kUInt8, {0, -1}));
}

TEST(Entries, DecodingChecksThatTheDataFits) {
  expect_error(
      [] { (void)decode_entries(bytes_of({1}), ElementType::kInt16, {1}, std::endian::little); },
      ErrorCode::kInternal, "check failed");
}

}  // namespace
}  // namespace lipscope

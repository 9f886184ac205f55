// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "io/arrays/formats.h"
#include "io/arrays/test_bytes.h"

namespace lipscope {
namespace {

using testing::Buffer;
using testing::bytes_of;
using testing::expect_error;
using testing::operator+;
using testing::truncated;

TEST(Idx, ReadsEveryTypeInBigEndian) {
  const auto one = [](int type, const Buffer& entry) {
    return parse_idx(bytes_of({0, 0, type, 1, 0, 0, 0, 1}) + entry, "x");
  };
  EXPECT_EQ(one(0x08, bytes_of({200})), Tensor(ElementType::kUInt8, {1}, std::vector<Index>{200}));
  EXPECT_EQ(one(0x09, bytes_of({200})), Tensor(ElementType::kInt8, {1}, std::vector<Index>{-56}));
  EXPECT_EQ(one(0x0B, bytes_of({1, 2})), Tensor(ElementType::kInt16, {1}, std::vector<Index>{258}));
  EXPECT_EQ(one(0x0C, bytes_of({255, 255, 255, 255})),
            Tensor(ElementType::kInt32, {1}, std::vector<Index>{-1}));
  EXPECT_EQ(one(0x0D, bytes_of({0x3f, 0x80, 0, 0})),
            Tensor(ElementType::kFloat32, {1}, std::vector<double>{1.0}));
  EXPECT_EQ(one(0x0E, bytes_of({0xc0, 0, 0, 0, 0, 0, 0, 0})), Tensor::vector({-2.0}));
}

TEST(Idx, ShapesOfAnyRankAreRead) {
  EXPECT_EQ(parse_idx(bytes_of({0, 0, 8, 0, 7}), "x"),
            Tensor(ElementType::kUInt8, {}, std::vector<Index>{7}));
  EXPECT_EQ(parse_idx(bytes_of({0, 0, 8, 1, 0, 0, 0, 0}), "x").shape(), (Shape{0}));
  const Buffer image =
      bytes_of({0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 10, 11, 12, 13, 14, 15});
  const Tensor tensor = parse_idx(image, "x");
  EXPECT_EQ(tensor.shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(tensor.at(4), 14.0);
  EXPECT_TRUE(is_exact_idx(image));
}

TEST(Idx, EveryTruncationIsRefused) {
  const Buffer whole = bytes_of({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(is_exact_idx(truncated(whole, size)));
    expect_error([&] { (void)parse_idx(truncated(whole, size), "a.idx"); }, ErrorCode::kBadFile,
                 "a.idx: ");
  }
  expect_error([&] { (void)parse_idx(truncated(whole, 6), "a.idx"); }, ErrorCode::kBadFile,
               "a.idx: truncated idx header");
  expect_error([&] { (void)parse_idx(truncated(whole, 14), "a.idx"); }, ErrorCode::kBadFile,
               "a.idx: truncated: the header says uint8 [2, 2], 4 bytes, but 2 follow");
}

TEST(Idx, BytesAfterTheEntriesAreRefused) {
  expect_error(
      [] {
        (void)parse_idx(bytes_of({0, 0, 8, 1, 0, 0, 0, 1, 5, 6}), "a.idx");
      },
      ErrorCode::kBadFile, "a.idx: 1 bytes too many");
}

TEST(Idx, SizesThatOverflowAreRefusedBeforeAllocating) {
  const Buffer huge = bytes_of({255, 255, 255, 255});
  expect_error(
      [&] {
        (void)parse_idx(bytes_of({0, 0, 14, 3}) + huge + huge + huge, "a.idx");
      },
      ErrorCode::kBadFile, "a.idx: the shape [4294967295, 4294967295, 4294967295] in its header");
  expect_error(
      [&] {
        (void)parse_idx(bytes_of({0, 0, 14, 1}) + huge, "a.idx");
      },
      ErrorCode::kBadFile, "a.idx: truncated: the header says float64 [4294967295]");
}

TEST(Idx, OtherFilesAreNotIdx) {
  EXPECT_FALSE(is_idx(bytes_of({0, 0, 10, 1})));
  EXPECT_FALSE(is_idx(bytes_of({0, 1, 8, 1})));
  EXPECT_FALSE(is_idx(bytes_of({0, 0, 8})));
  expect_error([] { (void)parse_idx(bytes_of("1,2,3"), "a.idx"); }, ErrorCode::kBadFile,
               "a.idx: not an idx file");
}

}  // namespace
}  // namespace lipscope

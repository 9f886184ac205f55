// SPDX-License-Identifier: Apache-2.0
#include "io/arrays/gzip.h"

#include <gtest/gtest.h>

#include "io/arrays/test_bytes.h"

namespace lipscope {
namespace {

using testing::Buffer;
using testing::bytes_of;
using testing::expect_error;
using testing::operator+;
using testing::truncated;

// `echo hello | gzip -9n`, so that the reader is not only tested against this library's writer.
const Buffer kHello =
    bytes_of({0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xcb, 0x48, 0xcd,
              0xc9, 0xc9, 0xe7, 0x02, 0x00, 0x20, 0x30, 0x3a, 0x36, 0x06, 0x00, 0x00, 0x00});

TEST(Gunzip, UnpacksAFileOfTheGzipProgram) {
  EXPECT_EQ(gunzip_if_gzip(kHello, "f"), bytes_of("hello\n"));
}

TEST(Gunzip, LeavesOtherFilesAlone) {
  EXPECT_FALSE(gunzip_if_gzip(bytes_of("hello"), "f"));
  EXPECT_FALSE(gunzip_if_gzip({}, "f"));
  EXPECT_FALSE(gunzip_if_gzip(bytes_of({0x1f}), "f"));
}

TEST(Gunzip, JoinsMembersAndSkipsZeroPadding) {
  EXPECT_EQ(gunzip_if_gzip(kHello + kHello + Buffer(512), "f"), bytes_of("hello\nhello\n"));
}

TEST(Gunzip, LargeDataSurvivesARoundTrip) {
  Buffer data(3'000'000);
  std::uint32_t state = 1;
  for (std::byte& b : data)
    b = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
  EXPECT_EQ(gunzip_if_gzip(deflate_bytes(data, DeflateFormat::kGzip), "f"), data);
  EXPECT_EQ(gunzip_if_gzip(deflate_bytes({}, DeflateFormat::kGzip), "f"), Buffer{});
}

TEST(Gunzip, EveryTruncationIsRefused) {
  for (std::size_t size = 2; size < kHello.size(); ++size) {
    expect_error([&] { (void)gunzip_if_gzip(truncated(kHello, size), "f.gz"); },
                 ErrorCode::kBadFile, "f.gz: truncated compressed data");
  }
}

TEST(Gunzip, DamageAndTrailingBytesAreRefused) {
  Buffer wrong_sum = kHello;
  wrong_sum[18] ^= std::byte{1};
  expect_error([&] { (void)gunzip_if_gzip(wrong_sum, "f.gz"); }, ErrorCode::kBadFile,
               "f.gz: damaged compressed data (incorrect data check)");
  expect_error([] { (void)gunzip_if_gzip(kHello + bytes_of("xyz"), "f.gz"); }, ErrorCode::kBadFile,
               "3 bytes after the end");
}

TEST(Gunzip, StopsAtTheLimitAndNotBefore) {
  const Buffer zeros(1'000'000);
  const Buffer packed = deflate_bytes(zeros, DeflateFormat::kGzip);
  ASSERT_LT(packed.size(), 2000U);
  EXPECT_EQ(gunzip_if_gzip(packed, "f", 1'000'000)->size(), 1'000'000U);
  expect_error([&] { (void)gunzip_if_gzip(packed, "f.gz", 999'999); }, ErrorCode::kBadFile,
               "f.gz: unpacks to more than 999999 bytes");
  expect_error([&] { (void)gunzip_if_gzip(packed + packed, "f.gz", 1'500'000); },
               ErrorCode::kBadFile, "unpacks to more than");
}

TEST(InflateRaw, TheSizeMustBeTheOneSaid) {
  const Buffer data = bytes_of("some text, some text, some text");
  const Buffer packed = deflate_bytes(data, DeflateFormat::kRaw);
  EXPECT_EQ(inflate_raw(packed, data.size(), "m"), data);
  expect_error([&] { (void)inflate_raw(packed, data.size() + 1, "m"); }, ErrorCode::kBadFile,
               "m: unpacks to 31 bytes where the directory says 32");
  expect_error([&] { (void)inflate_raw(packed, data.size() - 1, "m"); }, ErrorCode::kBadFile,
               "m: unpacks to more than 30 bytes");
  expect_error([&] { (void)inflate_raw(packed + packed, data.size(), "m"); }, ErrorCode::kBadFile,
               "m: unpacks to 31 bytes");
}

TEST(InflateRaw, AnImpossibleSizeIsRefusedBeforeAllocating) {
  expect_error(
      [] {
        (void)inflate_raw(bytes_of({3, 0}), std::uint64_t{1} << 50U, "m");
      },
      ErrorCode::kBadFile, "m: 2 compressed bytes cannot hold");
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "io/arrays/formats.h"
#include "io/arrays/test_bytes.h"
#include "io/arrays/zip.h"

namespace lipscope {
namespace {

using testing::Buffer;
using testing::bytes_of;
using testing::expect_error;
using testing::operator+;
using testing::find;
using testing::truncated;

const std::vector<NamedTensor> kArrays = {
    {"x", Tensor(ElementType::kFloat32, {2, 2}, std::vector<double>{1, 2, 3, 4})},
    {"labels", Tensor::integers({3}, {7, 8, 9})},
    {"a/b:0", Tensor::scalar(0.5)},
};

std::vector<NamedTensor> parse_npz_file(const Buffer& file) { return parse_npz(file, "a.npz", {}); }

void expect_bad_npz(const Buffer& file, std::string_view text,
                    ErrorCode code = ErrorCode::kBadFile) {
  expect_error([&] { (void)parse_npz_file(file); }, code, text);
}

// Positions of fields after the four bytes "PK\1\2" of a central header.
constexpr std::size_t kFlags = 8;
constexpr std::size_t kMethod = 10;
constexpr std::size_t kPackedSize = 20;
constexpr std::size_t kSize = 24;
constexpr std::size_t kOffset = 42;

Buffer with(Buffer file, std::size_t at, std::initializer_list<int> values) {
  for (const int value : values) file.at(at++) = static_cast<std::byte>(value);
  return file;
}

TEST(Npz, MembersSurviveARoundTripInOrder) {
  for (const Compression compression : {Compression::kStored, Compression::kDeflated}) {
    const std::vector<NamedTensor> read = parse_npz_file(write_npz(kArrays, compression));
    ASSERT_EQ(read.size(), kArrays.size());
    for (std::size_t i = 0; i < read.size(); ++i) {
      EXPECT_EQ(read[i].name, kArrays[i].name);
      EXPECT_EQ(read[i].tensor, kArrays[i].tensor);
    }
  }
}

TEST(Npz, OnlyWantedMembersAreLookedAt) {
  std::vector<ZipInput> members = {{"bad.npy", bytes_of("not an array")},
                                   {"good.npy", write_npy(Tensor::scalar(3))}};
  const Buffer file = write_zip(members, true);
  const auto read =
      parse_npz(file, "a.npz", [](const std::string& name) { return name == "good"; });
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].tensor, Tensor::scalar(3));
  expect_bad_npz(file, "a.npz:bad: not a .npy file");
  EXPECT_EQ(npz_names(file, "a.npz"), (std::vector<std::string>{"bad", "good"}));
}

TEST(Npz, OtherMembersAreSkippedUnlessThereAreOnlySuch) {
  const ZipInput note = {"README.txt", bytes_of("hello")};
  const ZipInput array = {"x.npy", write_npy(Tensor::scalar(3))};
  EXPECT_EQ(parse_npz_file(write_zip(std::vector{note, array}, false)).size(), 1U);
  expect_bad_npz(write_zip(std::vector{note}, false),
                 "a.npz: a zip archive without arrays (its first member is 'README.txt')");
  expect_bad_npz(write_zip(std::vector{ZipInput{"net/data.pkl", {}}}, false),
                 "a.npz: a PyTorch file, not arrays; save them with numpy.savez");
}

TEST(Npz, AnArchiveWithoutMembersHoldsNoArrays) {
  EXPECT_TRUE(parse_npz_file(write_npz({})).empty());
}

TEST(Npz, TwoArraysOfOneNameAreRefused) {
  const ZipInput array = {"x.npy", write_npy(Tensor::scalar(3))};
  expect_bad_npz(write_zip(std::vector{array, array}, false), "a.npz: two arrays are called 'x'");
}

// What Python's zipfile writes to a stream: sizes follow the data, the local header has zeros.
TEST(Npz, LocalSizesMayBeMissing) {
  const Buffer file = write_npz(kArrays, Compression::kDeflated);
  const Buffer streamed =
      with(file, 6, {8, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(parse_npz_file(streamed)[0].tensor, kArrays[0].tensor);
}

TEST(Npz, AnArchiveCommentIsSkipped) {
  Buffer file = write_npz(kArrays);
  file[file.size() - 2] = std::byte{5};
  EXPECT_EQ(parse_npz_file(file + bytes_of("hello")).size(), 3U);
  expect_bad_npz(file + bytes_of("hell"), "directory is missing");
}

// A member and an end record whose 32-bit fields say "see the 64-bit ones".
TEST(Npz, Zip64IsRead) {
  const Buffer npy = write_npy(Tensor::vector({1, 2}));
  const Buffer plain = write_zip(std::vector{ZipInput{"x.npy", npy}}, false);
  const std::size_t central = find(plain, "PK\x01\x02");
  const std::size_t end = find(plain, "PK\x05\x06");
  const auto u64 = [](std::size_t value) {
    Buffer out;
    for (std::size_t k = 0; k < 8; ++k) out.push_back(static_cast<std::byte>(value >> (8 * k)));
    return out;
  };
  const Buffer extra =
      bytes_of({9, 0, 1, 0, 0, 1, 0, 24, 0}) + u64(npy.size()) + u64(npy.size()) + u64(0);
  Buffer header(plain.begin() + static_cast<std::ptrdiff_t>(central),
                plain.begin() + static_cast<std::ptrdiff_t>(end));
  header = with(header, kPackedSize, {255, 255, 255, 255, 255, 255, 255, 255});
  header = with(header, kOffset, {255, 255, 255, 255});
  header = with(header, 30, {static_cast<int>(extra.size()), 0}) + extra;
  const Buffer record64 = bytes_of({'P', 'K', 6, 6}) + u64(44) + Buffer(4 + 8) + u64(1) + u64(1) +
                          u64(header.size()) + u64(central);
  const Buffer locator = bytes_of({'P', 'K', 6, 7, 0, 0, 0, 0}) + u64(central + header.size()) +
                         bytes_of({1, 0, 0, 0});
  const Buffer end_record = bytes_of({'P', 'K', 5,   6,   0,   0,   0,   0,   255, 255, 255,
                                      255, 255, 255, 255, 255, 255, 255, 255, 255, 0,   0});
  const Buffer file = truncated(plain, central) + header + record64 + locator + end_record;
  ASSERT_EQ(parse_npz_file(file).size(), 1U);
  EXPECT_EQ(parse_npz_file(file)[0].tensor, Tensor::vector({1, 2}));
  expect_bad_npz(truncated(plain, central) + header + end_record, "a.npz: damaged zip directory");
}

TEST(Npz, EveryTruncationIsRefused) {
  const Buffer whole = write_npz(kArrays, Compression::kDeflated);
  for (std::size_t size = 4; size < whole.size(); ++size) {
    expect_bad_npz(truncated(whole, size),
                   "a.npz: truncated zip archive (its directory is missing)");
  }
}

TEST(Npz, DamagedDataIsRefused) {
  Buffer stored = write_npz(kArrays);
  stored[find(stored, "NUMPY") + 100] ^= std::byte{1};
  expect_bad_npz(stored, "a.npz:x: checksum mismatch");
  Buffer packed = write_npz(kArrays, Compression::kDeflated);
  packed[40] = std::byte{0xff};
  expect_bad_npz(packed, "a.npz:x: ");
}

TEST(Npz, SizesThatCannotBeAreRefusedBeforeAllocating) {
  const Buffer packed = write_npz(kArrays, Compression::kDeflated);
  const std::size_t central = find(packed, "PK\x01\x02");
  expect_bad_npz(with(packed, central + kSize, {0, 0, 0, 0xf0}), "unpacks to more than 256");
  expect_bad_npz(with(packed, central + kSize, {0, 0, 0, 0x08}), "compressed bytes cannot hold");
  expect_bad_npz(with(packed, central + kSize, {1, 0, 0, 0}), "unpacks to more than 1 bytes");
  expect_bad_npz(with(packed, central + kPackedSize, {0, 0, 0, 0xf0}), "truncated zip archive");
  expect_bad_npz(with(packed, central + kOffset, {0, 0, 0, 0xf0}),
                 "a.npz:x: damaged zip directory");
  expect_bad_npz(with(packed, central + kOffset, {1, 0, 0, 0}), "a.npz:x: damaged zip directory");
  const Buffer stored = write_npz(kArrays);
  expect_bad_npz(with(stored, find(stored, "PK\x01\x02") + kSize, {1, 0, 0, 0}),
                 "a.npz:x: damaged zip directory");
}

TEST(Npz, AnEndRecordThatLiesIsRefused) {
  const Buffer file = write_npz(kArrays);
  const std::size_t end = find(file, "PK\x05\x06");
  expect_bad_npz(with(file, end + 10, {0xfe, 0xff}), "a.npz: damaged zip directory");
  expect_bad_npz(with(file, end + 12, {0xfe, 0xff, 0xff, 0xff}), "a.npz: damaged zip directory");
  expect_bad_npz(with(file, end + 16, {0xfe, 0xff, 0xff, 0xff}), "a.npz: damaged zip directory");
  expect_bad_npz(with(file, end + 16, {0, 0, 0, 0}), "a.npz: damaged zip directory");
  expect_bad_npz(with(file, end + 16, {0xff, 0xff, 0xff, 0xff}), "a.npz: damaged zip directory");
}

TEST(Npz, EncryptionAndOtherCompressionAreUnsupported) {
  const Buffer file = write_npz(kArrays);
  const std::size_t central = find(file, "PK\x01\x02");
  expect_bad_npz(with(file, central + kFlags, {1}), "a.npz:x: is encrypted",
                 ErrorCode::kUnsupported);
  expect_bad_npz(with(file, central + kMethod, {14}), "a.npz:x: zip compression method 14",
                 ErrorCode::kUnsupported);
}

TEST(Npz, NamesFromTheFileCannotBreakTheMessage) {
  std::vector<ZipInput> members = {{"a\nb\x1b.npy", bytes_of("x")}};
  expect_bad_npz(write_zip(members, false), "a.npz:a\\x0ab\\x1b: not a .npy file");
}

}  // namespace
}  // namespace lipscope

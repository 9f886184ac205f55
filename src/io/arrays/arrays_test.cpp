// SPDX-License-Identifier: Apache-2.0
#include "lipscope/arrays.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "io/arrays/formats.h"
#include "io/arrays/gzip.h"
#include "io/arrays/test_bytes.h"

namespace lipscope {
namespace {

using testing::Buffer;
using testing::bytes_of;
using testing::expect_error;

const Tensor kVector = Tensor::vector({1, 2, 3});
const Buffer kIdx = bytes_of({0, 0, 8, 1, 0, 0, 0, 2, 5, 6});

void expect_bad_array(const Buffer& bytes, std::string_view text,
                      ErrorCode code = ErrorCode::kBadFile) {
  expect_error([&] { (void)parse_arrays(bytes, "f"); }, code, text);
}

TEST(ParseArrays, RecognisesEveryFormatByContentPlainOrGzip) {
  const std::vector<NamedTensor> members = {{"x", kVector}, {"y", Tensor::scalar(1)}};
  const std::vector<std::pair<Buffer, Shape>> files = {
      {write_npy(kVector), {3}},        {write_npz(members), {3}},      {kIdx, {2}},
      {bytes_of("1,2\n3,4\n"), {2, 2}}, {Buffer(3073), {1, 3, 32, 32}},
  };
  for (const auto& [bytes, shape] : files) {
    EXPECT_EQ(parse_arrays(bytes, "f").front().tensor.shape(), shape);
    const Buffer packed = deflate_bytes(bytes, DeflateFormat::kGzip);
    EXPECT_EQ(parse_arrays(packed, "f").front().tensor.shape(), shape);
  }
}

TEST(ParseArrays, ASingleArrayHasNoName) {
  const auto arrays = parse_arrays(write_npy(kVector), "f");
  ASSERT_EQ(arrays.size(), 1U);
  EXPECT_EQ(arrays[0].name, "");
  EXPECT_EQ(arrays[0].tensor, kVector);
}

// The first record of CIFAR: label 0, then pixels 0, 8 and 1, is the magic number of idx.
TEST(ParseArrays, CifarRecordsThatBeginLikeIdxAreCifar) {
  Buffer record(3073);
  record[2] = std::byte{8};
  record[3] = std::byte{1};
  EXPECT_EQ(parse_arrays(record, "f").front().name, "data");
  const int entries = 3073 - 8;
  for (std::size_t i = 0; i < 4; ++i) {
    record[7 - i] = static_cast<std::byte>(entries >> (8 * i));
  }
  EXPECT_EQ(parse_arrays(record, "f").front().tensor.shape(), (Shape{entries}));
}

TEST(ParseArrays, EmptyFilesAreRefused) {
  expect_bad_array({}, "f: is empty");
  expect_bad_array(deflate_bytes({}, DeflateFormat::kGzip), "f: is empty");
}

TEST(ParseArrays, OtherFilesAreNamed) {
  expect_bad_array(bytes_of({8, 7, 18, 7, 'p', 'y', 't', 'o', 'r', 'c', 'h'}),
                   "f: an ONNX model, not an array; give .npy, .npz, idx, csv or CIFAR-10 records");
  expect_bad_array(bytes_of({0x80, 2, 'c'}), "f: a Python pickle, not an array");
  expect_bad_array(bytes_of("\x89HDF\r\n\x1a\n..."), "f: an HDF5 file");
  expect_bad_array(bytes_of("\x89PNG\r\n"), "f: a PNG image");
  expect_bad_array(bytes_of("{\"a\": 1}"), "f: a JSON file");
  expect_bad_array(bytes_of("<html>"), "f: an HTML or XML file");
  expect_bad_array(bytes_of({9, 0, 0, 0, 0, 0, 0, 0, '{', '"'}), "f: a safetensors file");
  expect_bad_array(bytes_of({1, 2, 3, 4, 5}), "f: binary data of an unknown kind");
  expect_bad_array(bytes_of({0, 0, 8, 1, 0, 0}), "f: truncated idx header");
  expect_bad_array(bytes_of("PK\x03\x04"), "f: truncated zip archive");
  expect_bad_array(bytes_of("hello\n"), "f: line 1: 'hello' is not a number");
}

TEST(ParseArrays, DoublyCompressedFilesAreRefused) {
  const Buffer once = deflate_bytes(write_npy(kVector), DeflateFormat::kGzip);
  expect_bad_array(deflate_bytes(once, DeflateFormat::kGzip), "f: ");
}

class ReadArrays : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("lipscope_{}_{}", test->name(), getpid());
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const Buffer& bytes) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  static void expect_bad_array(const std::string& path, std::string_view text,
                               ErrorCode code = ErrorCode::kBadFile) {
    expect_error([&] { (void)read_array(path); }, code, text);
  }

  std::filesystem::path folder_;
  const std::vector<NamedTensor> two_ = {{"input_0", kVector}, {"input:1", Tensor::scalar(4)}};
};

TEST_F(ReadArrays, TheNameOfTheFileDoesNotMatter) {
  EXPECT_EQ(read_array(write("a.csv", write_npy(kVector))), kVector);
  EXPECT_EQ(read_array(write("b", deflate_bytes(write_npy(kVector), DeflateFormat::kGzip))),
            kVector);
}

TEST_F(ReadArrays, KeysChooseAMember) {
  const std::string path = write("a.npz", write_npz(two_));
  EXPECT_EQ(read_array(path + ":input_0"), kVector);
  EXPECT_EQ(read_array(path + ":input:1"), Tensor::scalar(4));
  const auto one = read_arrays(path + ":input:1");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].name, "input:1");
  EXPECT_EQ(read_arrays(path).size(), 2U);
  EXPECT_EQ(read_arrays(path, [](const std::string& n) { return n == "input_0"; }).size(), 1U);
}

TEST_F(ReadArrays, APathThatExistsIsNotSplit) {
  write("a.npz", write_npz(two_));
  EXPECT_EQ(read_array(write("a.npz:input_0", write_npy(Tensor::scalar(9)))), Tensor::scalar(9));
}

TEST_F(ReadArrays, AnArchiveOfOneNeedsNoKey) {
  const std::string path = write("a.npz", write_npz(std::vector<NamedTensor>{{"only", kVector}}));
  EXPECT_EQ(read_array(path), kVector);
}

TEST_F(ReadArrays, CifarImagesAreTheArrayAndLabelsAKey) {
  const std::string path = write("a.bin", Buffer(3073, std::byte{4}));
  EXPECT_EQ(read_array(path).shape(), (Shape{1, 3, 32, 32}));
  EXPECT_EQ(read_array(path + ":labels").at(0), 4.0);
  expect_bad_array(path + ":label",
                   "a.bin: no array 'label'; did you mean 'labels'? it has data, labels");
}

TEST_F(ReadArrays, AWrongKeyListsWhatThereIs) {
  const std::string path = write("a.npz", write_npz(two_));
  expect_bad_array(path + ":input_1",
                   "a.npz: no array 'input_1'; did you mean 'input_0'? it has input_0, input:1");
  expect_bad_array(path + ":zzz", "a.npz: no array 'zzz'; it has input_0, input:1");
  std::vector<NamedTensor> many;
  for (int i = 0; i < 20; ++i) many.push_back({fmt::format("array{}", i), kVector});
  expect_bad_array(write("many.npz", write_npz(many)) + ":zzz", "array7 and 12 more");
  const std::string long_key(5000, 'k');
  expect_bad_array(path + ":" + long_key, "it has input_0");
}

TEST_F(ReadArrays, AChoiceThatIsNotMadeIsAUsageError) {
  const std::string path = write("a.npz", write_npz(two_));
  expect_bad_array(
      path, "a.npz: holds 2 arrays (input_0, input:1); say which one, as in '" + path + ":input_0'",
      ErrorCode::kUsage);
  expect_bad_array(write("a.npy", write_npy(kVector)) + ":x",
                   "a.npy: holds one array without a name; leave out ':x'", ErrorCode::kUsage);
}

TEST_F(ReadArrays, AnEmptyArchiveHasNoArrayToGive) {
  const std::string path = write("a.npz", write_npz({}));
  EXPECT_TRUE(read_arrays(path).empty());
  expect_bad_array(path, "a.npz: holds no arrays");
  expect_bad_array(path + ":x", "a.npz: holds no arrays");
}

TEST_F(ReadArrays, MissingFilesAndFoldersAreNamed) {
  const std::string missing = (folder_ / "no.npz:key").string();
  expect_bad_array(missing, missing + ": no such file");
  expect_bad_array(folder_.string(), folder_.string() + ": is a directory");
  expect_bad_array(folder_.string() + ":key", "no such file");
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "io/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/checkpoint.h"
#include "io/arrays/test_bytes.h"
#include "lipscope/run_clock.h"

namespace lipscope {
namespace {

using testing::Buffer;
using testing::bytes_of;
using testing::expect_error;

class ReadFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = (std::filesystem::temp_directory_path() /
             fmt::format("lipscope_{}_{}", test->name(), getpid()))
                .string();
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  std::string path_;
};

TEST_F(ReadFile, GivesTheBytesOfTheFile) {
  const std::string text(200'000, 'x');
  std::ofstream(path_, std::ios::binary) << text;
  EXPECT_EQ(read_file(path_), bytes_of(text));
  std::ofstream(path_, std::ios::trunc) << "";
  EXPECT_EQ(read_file(path_), Buffer{});
}

TEST_F(ReadFile, ReadsPipes) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const std::jthread writer([this] { std::ofstream(path_, std::ios::binary) << "1,2\n"; });
  EXPECT_EQ(read_file(path_), bytes_of("1,2\n"));
}

TEST_F(ReadFile, RefusesMoreThanTheLimit) {
  std::ofstream(path_, std::ios::binary) << "12345";
  EXPECT_EQ(read_file(path_, 5), bytes_of("12345"));
  expect_error([&] { (void)read_file(path_, 4); }, ErrorCode::kBadFile,
               path_ + ": 5 bytes; 4 are read at most");
  // Far more than there is memory: it is refused before it is read.
  std::filesystem::resize_file(path_, std::uintmax_t{1} << 40U);
  expect_error([&] { (void)read_file(path_, 1U << 20U); }, ErrorCode::kBadFile, "1099511627776");
  std::filesystem::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const std::jthread writer([this] { std::ofstream(path_, std::ios::binary) << "12345"; });
  expect_error([&] { (void)read_file(path_, 4); }, ErrorCode::kBadFile, "more than the 4 bytes");
}

TEST_F(ReadFile, NamesWhatIsMissingOrADirectory) {
  expect_error([&] { (void)read_file(path_); }, ErrorCode::kBadFile, path_ + ": no such file");
  std::filesystem::create_directory(path_);
  expect_error([&] { (void)read_file(path_); }, ErrorCode::kBadFile, path_ + ": is a directory");
  expect_error([&] { (void)read_file(""); }, ErrorCode::kBadFile, "no such file");
}

TEST_F(ReadFile, RefusesDevices) {
  for (const std::string device : {"/dev/zero", "/dev/null"})
    expect_error([&] { (void)read_file(device); }, ErrorCode::kBadFile, device + ": is a device");
}

TEST_F(ReadFile, WaitsForAWriterAsLongAsTheRunLasts) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const auto over = RunClock::by_wall(0);
  {
    const RunScope scope(*over, 0);
    expect_error([&] { (void)read_file(path_); }, ErrorCode::kBadFile,
                 path_ + ": a pipe that nobody writes to");
  }
  {
    std::stop_source source;
    source.request_stop();
    const auto stopped = RunClock::by_wall(HUGE_VAL, source.get_token());
    const RunScope scope(*stopped, HUGE_VAL);
    EXPECT_THROW((void)read_file(path_), Stopped);
  }
  // Without a limit the writer has all the time it takes.
  const int end = ::open(path_.c_str(), O_RDWR);
  ASSERT_GE(end, 0);
  const std::jthread writer([end] {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    EXPECT_EQ(::write(end, "1", 1), 1);
    ::close(end);
  });
  EXPECT_EQ(read_file(path_), bytes_of("1"));
}

TEST_F(ReadFile, NamesWhatMayNotBeRead) {
  std::ofstream(path_) << "1";
  ASSERT_EQ(chmod(path_.c_str(), 0), 0);
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  expect_error([&] { (void)read_file(path_); }, ErrorCode::kBadFile,
               "cannot be read (Permission denied)");
}

TEST(DisplayName, CallsTheDashStandardInput) {
  EXPECT_EQ(display_name("-"), "standard input");
  EXPECT_EQ(display_name("a/b"), "a/b");
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "base/memory_budget.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/checkpoint.h"
#include "lipscope/error.h"
#include "lipscope/run_clock.h"

namespace lipscope {
namespace {

double group_memory(const std::string& groups, const std::map<std::string, std::string>& files) {
  return control_group_memory(groups, [&](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(ControlGroupMemory, VersionTwoIsTheLeastOnTheWayUp) {
  EXPECT_EQ(group_memory("0::/user/job\n", {{"/sys/fs/cgroup/user/job/memory.max", "max\n"},
                                            {"/sys/fs/cgroup/user/memory.max", "3000000\n"},
                                            {"/sys/fs/cgroup/memory.max", "5000000\n"}}),
            3e6);
  EXPECT_EQ(group_memory("0::/\n", {{"/sys/fs/cgroup/memory.max", "5000000\n"}}), 5e6);
  EXPECT_EQ(group_memory("0::/\n", {{"/sys/fs/cgroup/memory.high", "4000000\n"}}), 4e6);
}

TEST(ControlGroupMemory, VersionOneHasAControllerOfItsOwn) {
  const std::string groups = "12:cpu,cpuacct:/docker/a\n4:memory:/docker/a\n1:name=systemd:/\n";
  EXPECT_EQ(group_memory(groups, {{"/sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes", "7e5"},
                                  {"/sys/fs/cgroup/cpu/docker/a/memory.limit_in_bytes", "1"}}),
            7e5);
  // What it says without a limit is more than any machine has.
  EXPECT_GT(group_memory(
                groups, {{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}}),
            1e18);
}

TEST(ControlGroupMemory, NothingReadableIsNoLimit) {
  for (const char* groups : {"", "nonsense", "0::", "0:memory", ":::\n\n", "0::relative/path"})
    EXPECT_EQ(group_memory(groups, {}), HUGE_VAL) << groups;
  EXPECT_EQ(group_memory("0::/a\n", {{"/sys/fs/cgroup/a/memory.max", "what?"}}), HUGE_VAL);
}

TEST(MemoryText, HasThreeDigits) {
  EXPECT_EQ(memory_text(0), "0 MB");
  EXPECT_EQ(memory_text(1e8), "100 MB");
  EXPECT_EQ(memory_text(1.5e9), "1.5 GB");
  EXPECT_EQ(memory_text(3.2e11), "320 GB");
}

// The limit of this process, put back at the end.
class MemoryBudget : public testing::Test {
 protected:
  void TearDown() override {
    set_memory_exceeded(false);
    set_memory_limit(before_);
  }
  double before_ = memory_limit();
};

TEST_F(MemoryBudget, ADefaultIsPartOfTheMachine) {
  EXPECT_GT(before_, 1e8);
  EXPECT_LT(before_, 1e15);
  EXPECT_GT(resident_memory(), 1e6);
  EXPECT_LT(memory_left(), before_);
}

TEST_F(MemoryBudget, WhatDoesNotFitIsNamed) {
  set_memory_limit(resident_memory() + 1e8);
  EXPECT_NO_THROW(require_memory(5e7, "half"));
  for (const double bytes : {2e8, 1e20, HUGE_VAL}) {
    try {
      require_memory(bytes, "the matrix");
      ADD_FAILURE() << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
      EXPECT_EQ(std::string(error.what()).find("the matrix would take "), 0U);
      EXPECT_NE(std::string(error.what()).find("raise --memory"), std::string::npos);
    }
  }
}

TEST_F(MemoryBudget, BlocksAreCountedUntilTheyAreReleased) {
  set_memory_limit(resident_memory() + 1e8);
  EXPECT_TRUE(admit_memory(60'000'000));
  EXPECT_FALSE(admit_memory(60'000'000));  // nothing of the first is resident, but it will be
  EXPECT_LT(memory_left(), 5e7);
  release_memory(60'000'000);
  EXPECT_TRUE(admit_memory(60'000'000));
  release_memory(60'000'000);
  EXPECT_FALSE(admit_memory(SIZE_MAX));
  EXPECT_GT(memory_left(), 5e7);
}

TEST_F(MemoryBudget, AReserveIsForTheEnd) {
  set_memory_limit(resident_memory() + 1e8);
  const double ceiling = memory_ceiling();
  {
    const MemoryReserve reserve;
    EXPECT_GT(memory_ceiling(), ceiling + 1e6);
    EXPECT_LE(memory_ceiling(), 1.05 * ceiling + 1e7);
  }
  EXPECT_EQ(memory_ceiling(), ceiling);
}

TEST_F(MemoryBudget, CheckpointsEndWhatRunsBeyondIt) {
  const auto clock = RunClock::by_wall(HUGE_VAL);
  const RunScope scope(*clock, HUGE_VAL);
  EXPECT_NO_THROW(checkpoint());
  set_memory_exceeded(true);
  try {
    checkpoint();
    ADD_FAILURE();
  } catch (const Stopped& stopped) {
    EXPECT_EQ(stopped.cause, StopCause::kMemory);
  }
  relieve_memory();  // there is enough
  EXPECT_NO_THROW(checkpoint());
}

}  // namespace
}  // namespace lipscope

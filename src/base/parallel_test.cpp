// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <stdexcept>

#include "base/checkpoint.h"
#include "lipscope/run_clock.h"

namespace lipscope {
namespace {

class Parallel : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_threads(GetParam()); }
  void TearDown() override { set_threads(0); }
};

TEST_P(Parallel, IsCutByTheSizeOfTheProblemAlone) {
  std::mutex mutex;
  std::set<std::pair<std::int64_t, std::int64_t>> pieces;
  parallel_for(1000, 100, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    pieces.insert({begin, end});
  });
  ASSERT_EQ(pieces.size(), 10U);
  std::int64_t at = 0;
  for (const auto& [begin, end] : pieces) {
    EXPECT_EQ(begin, at);
    at = end;
  }
  EXPECT_EQ(at, 1000);
}

TEST_P(Parallel, PiecesSeeTheirOwnWorkAndTheCallerSeesAll) {
  const auto clock = RunClock::by_work(1);
  const RunScope scope(*clock, HUGE_VAL);
  checkpoint(1e9);
  std::vector<double> seen(8);
  parallel_for(8, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) {
      checkpoint(1e9);
      seen[static_cast<std::size_t>(i)] = clock->now();
    }
  });
  EXPECT_EQ(seen, std::vector<double>(8, 2.0));
  EXPECT_EQ(clock->now(), 9);
}

TEST_P(Parallel, TheRunIsCutInsidePieces) {
  const auto clock = RunClock::by_work(1);
  const RunScope scope(*clock, 5);
  EXPECT_THROW(parallel_for(4, 1,
                            [&](std::int64_t, std::int64_t) {
                              for (;;) checkpoint(1e8);
                            }),
               Stopped);
}

TEST_P(Parallel, WorkOfPiecesThatWereCutCounts) {
  const auto clock = RunClock::by_work(1);
  const RunScope scope(*clock, 5);
  const auto endless = [&](std::int64_t, std::int64_t) {
    for (;;) checkpoint(1e8);
  };
  EXPECT_THROW(parallel_for(4, 1, endless), Stopped);
  EXPECT_NEAR(clock->now(), 20, 1);
}

TEST_P(Parallel, TheFirstExceptionReachesTheCaller) {
  for (int round = 0; round < 20; ++round) {
    try {
      parallel_for(16, 1, [](std::int64_t begin, std::int64_t) {
        if (begin % 5 == 3) throw std::runtime_error(std::to_string(begin));
      });
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "3");
    }
  }
}

TEST_P(Parallel, ALoopInsideALoopIsOnePiece) {
  std::mutex mutex;
  std::set<std::int64_t> inner;
  parallel_for(4, 1, [&](std::int64_t, std::int64_t) {
    parallel_for(100, 1, [&](std::int64_t begin, std::int64_t end) {
      const std::lock_guard lock(mutex);
      inner.insert(end - begin);
    });
  });
  EXPECT_EQ(inner, std::set<std::int64_t>{100});
}

INSTANTIATE_TEST_SUITE_P(Threads, Parallel, ::testing::Values(1, 2, 4));

TEST(Threads, AreThoseTheProcessMayUse) {
  EXPECT_GE(usable_processors(), 1);
  set_threads(3);
  EXPECT_EQ(threads(), 3);
  set_threads(0);
  EXPECT_EQ(threads(), usable_processors());
}

}  // namespace
}  // namespace lipscope

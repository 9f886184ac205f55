// SPDX-License-Identifier: Apache-2.0
#include "lipscope/run_clock.h"

#include <gtest/gtest.h>

#include "base/checkpoint.h"

namespace lipscope {
namespace {

constexpr double kSecond = 1e9;  // operations

TEST(RunClock, CountsTheWorkOfItsScopeAlone) {
  const auto clock = RunClock::by_work(1);
  checkpoint(kSecond);
  EXPECT_TRUE(clock->counts_work());
  const RunScope scope(*clock, HUGE_VAL);
  EXPECT_EQ(clock->now(), 0);
  checkpoint(2 * kSecond);
  EXPECT_EQ(clock->now(), 2);
  {
    const RunScope inner(*clock, HUGE_VAL);
    charge(kSecond);
    EXPECT_EQ(clock->now(), 3);
  }
  EXPECT_EQ(clock->now(), 3);
  EXPECT_FALSE(clock->passed(4));
  EXPECT_TRUE(clock->passed(3));
}

TEST(RunClock, GoesOnWhereTheScopeBeforeEnded) {
  const auto clock = RunClock::by_work(1), other = RunClock::by_work(1);
  for (int round = 1; round < 4; ++round) {
    const RunScope scope(*clock, HUGE_VAL);
    checkpoint(kSecond);
    EXPECT_EQ(clock->now(), round);
  }
  EXPECT_EQ(clock->now(), 3);
  EXPECT_EQ(other->now(), 0);
}

TEST(RunClock, AskingAdvancesAClockByWorkSoThatEveryLoopEnds) {
  const auto clock = RunClock::by_work(1e-4);
  const RunScope scope(*clock, HUGE_VAL);
  int turns = 0;
  while (!clock->passed(clock->limit()) && turns < 1'000'000) ++turns;
  EXPECT_LT(turns, 10'000);
}

TEST(RunClock, LoopsEndWhereTheRunIsCut) {
  const auto clock = RunClock::by_work(1);
  int turns = 0;
  const auto loop = [&] {
    for (;; ++turns) checkpoint(0.01 * kSecond);
  };
  const RunScope outer(*clock, 2);
  try {
    const RunScope scope(*clock, 1);
    loop();
  } catch (const Stopped& stopped) {
    EXPECT_EQ(stopped.cause, StopCause::kTime);
  }
  EXPECT_NEAR(turns, 99, 1);
  // An inner scope cannot outlive the outer one.
  const RunScope longer(*clock, 100);
  EXPECT_THROW(loop(), Stopped);
  EXPECT_NEAR(turns, 199, 2);
}

TEST(RunClock, WhatHasToBeFinishedIs) {
  const auto clock = RunClock::by_work(1);
  const RunScope scope(*clock, 1);
  {
    const Unstoppable finish;
    EXPECT_NO_THROW(checkpoint(5 * kSecond));
  }
  EXPECT_THROW(checkpoint(), Stopped);
}

TEST(RunClock, AStopRequestEndsTheRun) {
  std::stop_source source;
  const auto clock = RunClock::by_work(1, source.get_token());
  const RunScope scope(*clock, HUGE_VAL);
  EXPECT_FALSE(clock->passed(1));
  source.request_stop();
  EXPECT_TRUE(clock->passed(1));
  // What ends by itself has a moment for it; what does not is ended.
  try {
    for (;;) checkpoint();
  } catch (const Stopped& stopped) {
    EXPECT_EQ(stopped.cause, StopCause::kInterrupt);
  }
}

TEST(RunClock, TheWallNeedsNoScope) {
  const auto clock = RunClock::by_wall(HUGE_VAL);
  EXPECT_FALSE(clock->counts_work());
  EXPECT_FALSE(clock->passed(1e9));
  EXPECT_TRUE(clock->passed(0));
}

}  // namespace
}  // namespace lipscope

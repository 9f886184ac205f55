// SPDX-License-Identifier: Apache-2.0
// A bar for work that is counted: how much is done, how fast, when it will end.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "command.h"
#include "lipscope/tensor.h"

namespace lipscope::app {

// May be told from several threads.
class CountProgress {
 public:
  CountProgress(const Common& common, std::string stage, Index total);
  ~CountProgress();
  CountProgress(const CountProgress&) = delete;
  CountProgress& operator=(const CountProgress&) = delete;

  void add(Index done);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(double seconds) const;
  void print(double seconds) const;

  const bool terminal_, json_;
  const std::string stage_;
  const Index total_;
  std::mutex mutex_;
  Index done_ = 0;
  Clock::time_point start_, last_;
};

}  // namespace lipscope::app

// SPDX-License-Identifier: Apache-2.0
// What a running command says on standard error: a line redrawn on a terminal, or with
// --progress json one JSON document per line and event.
#pragma once

#include <chrono>

#include "command.h"
#include "lipscope/bound.h"

namespace lipscope::app {

class Progress {
 public:
  explicit Progress(const Common& common);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const ProgressEvent& event);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(const ProgressEvent& event);
  void print(const ProgressEvent& event);

  bool terminal_, json_;
  Clock::time_point start_, last_;
};

}  // namespace lipscope::app

// SPDX-License-Identifier: Apache-2.0
#include "count_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace lipscope::app {

CountProgress::CountProgress(const Common& common, std::string stage, Index total)
    : terminal_(!common.quiet && common.progress == "auto" && isatty(STDERR_FILENO) == 1),
      json_(!common.quiet && common.progress == "json"),
      stage_(std::move(stage)),
      total_(total),
      start_(Clock::now()) {}

CountProgress::~CountProgress() {
  if (terminal_) fmt::print(stderr, "\r\033[K");
}

void CountProgress::add(Index done) {
  const std::lock_guard lock(mutex_);
  done_ += done;
  const auto now = Clock::now();
  if (now - last_ < std::chrono::milliseconds(100) && done_ < total_) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  if (terminal_) draw(seconds);
  if (json_) print(seconds);
}

void CountProgress::draw(double seconds) const {
  constexpr Index kWidth = 24;
  const double rate = static_cast<double>(done_) / std::max(seconds, 1e-9);
  const Index full = total_ > 0 ? kWidth * done_ / total_ : kWidth;
  std::string bar(static_cast<std::size_t>(full), '#');
  bar.resize(kWidth, '.');
  fmt::print(stderr, "\r\033[K{} [{}] {}/{}  {:.3g}/s  {:.0f} s left", stage_, bar, done_, total_,
             rate, static_cast<double>(total_ - done_) / std::max(rate, 1e-9));
  std::fflush(stderr);
}

void CountProgress::print(double seconds) const {
  const double rate = static_cast<double>(done_) / std::max(seconds, 1e-9);
  const Json line{{"event", "count"},
                  {"stage", stage_},
                  {"done", done_},
                  {"total", total_},
                  {"seconds", seconds},
                  {"rate", rate},
                  {"seconds_left", static_cast<double>(total_ - done_) / std::max(rate, 1e-9)}};
  fmt::print(stderr, "{}\n", to_text(line));
}

}  // namespace lipscope::app

// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/rounding.h"
#include "bound_json.h"

namespace lipscope::app {

Progress::Progress(const Common& common)
    : terminal_(!common.quiet && common.progress == "auto" && isatty(STDERR_FILENO) == 1),
      json_(!common.quiet && common.progress == "json"),
      start_(Clock::now()) {}

Progress::~Progress() {
  if (terminal_) fmt::print(stderr, "\r\033[K");
}

void Progress::show(const ProgressEvent& event) {
  if (terminal_) draw(event);
  if (json_) print(event);
}

void Progress::draw(const ProgressEvent& event) {
  const auto now = Clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  const auto lower = best_lower(*event.best), upper = best_upper(*event.best);
  fmt::print(stderr, "\r\033[K{:.1f} s  {}  {} <= L <= {}",
             std::chrono::duration<double>(now - start_).count(), event.stage,
             lower ? format_down(lower->value, 5) : "?", upper ? format_up(upper->value, 5) : "?");
  std::fflush(stderr);
}

void Progress::print(const ProgressEvent& event) {
  const std::chrono::duration<double> seconds = Clock::now() - start_;
  const Json line{{"event", "bracket"},
                  {"stage", event.stage},
                  {"seconds", seconds.count()},
                  {"lower", to_json(best_lower(*event.best))},
                  {"upper", to_json(best_upper(*event.best))}};
  fmt::print(stderr, "{}\n", to_text(line));
}

}  // namespace lipscope::app

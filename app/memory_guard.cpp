// SPDX-License-Identifier: Apache-2.0
#include "memory_guard.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "base/memory_budget.h"
#include "lipscope/error.h"

namespace lipscope::app {
namespace {

constexpr double kLeastRoom = 3e7;  // bytes

// Where `give_up` comes without delay. Below it, operator new keeps the limit itself.
double end_of_patience(double limit) { return 1.05 * limit + 2.5e7; }

class MemoryWatch {
 public:
  explicit MemoryWatch(std::function<void()> give_up) : give_up_(std::move(give_up)) {}

  [[noreturn]] void run() {
    while (true) {
      const double used = resident_memory(), limit = memory_ceiling();
      look(used, limit);
      std::this_thread::sleep_for(std::chrono::milliseconds(used > 0.6 * limit ? 3 : 20));
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  void look(double used, double limit) {
    const double enough = 1.02 * limit + 5e6;  // for what comes and goes
    if (used > end_of_patience(limit)) give_up_();
    if (used > enough) {
      relieve_memory();
      used = resident_memory();
    }
    if (used <= enough) {
      if (exceeded_) set_memory_exceeded(false);
      exceeded_ = false;
      return;
    }
    if (!exceeded_) {
      exceeded_ = true;
      since_ = Clock::now();
      count_memory_refusal();
    }
    set_memory_exceeded(true);
    if (Clock::now() - since_ > std::chrono::seconds(2)) give_up_();
  }

  std::function<void()> give_up_;
  bool exceeded_ = false;
  Clock::time_point since_;
};

}  // namespace

void keep_memory_limit(double limit, std::function<void()> give_up) {
  set_memory_limit(limit);
  if (std::isinf(limit)) return;
  const double used = resident_memory();
  if (used + kLeastRoom > limit) {
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("a memory limit of {} leaves no room: {} are in use before a file is "
                    "read; give --memory {:.2g} or more",
                    memory_text(limit), memory_text(used), (used + kLeastRoom) / 1e9 + 0.01));
  }
  std::thread([give_up = std::move(give_up)]() mutable {
    MemoryWatch(std::move(give_up)).run();
  }).detach();
}

}  // namespace lipscope::app

// SPDX-License-Identifier: Apache-2.0
#include "memory_guard.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "interrupt.h"

namespace lipscope::app {
namespace {

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void watch_memory(double limit, std::function<void()> give_up) {
  std::thread([limit, give_up = std::move(give_up)] {
    using Clock = std::chrono::steady_clock;
    auto exceeded = Clock::time_point::max();
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(20))) {
      const double used = resident_bytes();
      if (used <= limit) continue;
      if (exceeded == Clock::time_point::max()) {
        exceeded = Clock::now();
        request_stop();
      }
      if (used > 1.5 * limit || Clock::now() - exceeded > std::chrono::seconds(2)) give_up();
    }
  }).detach();
}

}  // namespace lipscope::app

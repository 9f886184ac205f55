// SPDX-License-Identifier: Apache-2.0
#include "interrupt.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <ctime>
#include <thread>

#include "output_file.h"

namespace lipscope::app {
namespace {

std::array<int, 2> pipe_ends;
timespec first_interrupt{};
volatile std::sig_atomic_t interrupts = 0;

std::stop_source& stop_source() {
  static std::stop_source source;
  return source;
}

// A handler may do next to nothing: it wakes a thread that may do more.
void on_interrupt(int) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (interrupts > 0) {
    // One Ctrl-C may arrive twice, through a wrapper and through the process group.
    const auto milliseconds = (now.tv_sec - first_interrupt.tv_sec) * 1000 +
                              (now.tv_nsec - first_interrupt.tv_nsec) / 1'000'000;
    if (milliseconds <= 300) return;
    remove_unfinished();
    _exit(kExitInterrupted);
  }
  interrupts = 1;
  first_interrupt = now;
  const char byte = 0;
  [[maybe_unused]] const auto written = write(pipe_ends[1], &byte, 1);
}

}  // namespace

std::stop_token stop_on_interrupt() {
  static const bool started = [] {
    if (pipe(pipe_ends.data()) != 0) return false;
    std::thread([] {
      char byte = 0;
      if (read(pipe_ends[0], &byte, 1) == 1) stop_source().request_stop();
    }).detach();
    return std::signal(SIGINT, on_interrupt) != SIG_ERR &&
           std::signal(SIGTERM, on_interrupt) != SIG_ERR;
  }();
  (void)started;
  return stop_source().get_token();
}

}  // namespace lipscope::app

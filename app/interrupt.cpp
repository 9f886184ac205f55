// SPDX-License-Identifier: Apache-2.0
#include "interrupt.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

namespace lipscope::app {
namespace {

std::array<int, 2> pipe_ends;
volatile std::sig_atomic_t interrupts = 0;

std::stop_source& stop_source() {
  static std::stop_source source;
  return source;
}

// A handler may do next to nothing: it wakes a thread that may do more.
void on_interrupt(int) {
  interrupts = interrupts + 1;
  if (interrupts > 1) _exit(130);
  const char byte = 0;
  [[maybe_unused]] const auto written = write(pipe_ends[1], &byte, 1);
}

}  // namespace

std::stop_token stop_on_interrupt() {
  static const bool started = [] {
    if (pipe(pipe_ends.data()) != 0) return false;
    std::thread([] {
      char byte = 0;
      if (read(pipe_ends[0], &byte, 1) == 1) request_stop();
    }).detach();
    return std::signal(SIGINT, on_interrupt) != SIG_ERR;
  }();
  (void)started;
  return stop_source().get_token();
}

void request_stop() { stop_source().request_stop(); }

}  // namespace lipscope::app

// SPDX-License-Identifier: Apache-2.0
// Where long loops can be ended, and where work is counted.
//
//   for (Index row = 0; row < rows; ++row) {
//     checkpoint(2.0 * columns);
//     ...
//   }
#pragma once

#include <cmath>

namespace lipscope {

enum class StopCause { kTime, kInterrupt, kMemory };

// Thrown by checkpoint() where a run has to end at once. No Error: what recovers from a bad file or
// a bad call must not swallow it.
struct Stopped {
  StopCause cause;
};

struct Errand;

// What knows when a run has to end. Asked by every thread that works for the run.
class Watch {
 public:
  // Throws Stopped.
  virtual void look(const Errand& errand) const = 0;

 protected:
  ~Watch() = default;
};

// What the current thread works for.
struct Errand {
  const Watch* watch = nullptr;
  // Done so far, in operations of plain scalar code, about 10^9 a second. Inside a parallel_for:
  // before it and by this piece, so that no other thread can be noticed.
  double work = 0;
  double cut = HUGE_VAL;  // by the clock of the watch: when checkpoint() throws
  double unseen = 0;      // work since the watch last looked
};

[[nodiscard]] Errand& errand();

// An operation of a BLAS, an FFT or oneDNN, in operations of plain code.
inline constexpr double kBlasOperation = 0.1;

// To be called every few milliseconds, with the work that was done or is about to be done.
inline void checkpoint(double operations = 0) {
  Errand& mine = errand();
  mine.work += operations;
  if (mine.watch != nullptr) mine.watch->look(mine);
}

// The same for work of any size: the watch looks now and then.
inline void charge(double operations) {
  constexpr double kLook = 3e5;
  Errand& mine = errand();
  mine.work += operations;
  mine.unseen += operations;
  if (mine.unseen < kLook) return;
  mine.unseen = 0;
  if (mine.watch != nullptr) mine.watch->look(mine);
}

// While alive, checkpoint() counts and does not throw: for what has to be finished, such as
// writing what was found.
class Unstoppable {
 public:
  Unstoppable() : watch_(errand().watch) { errand().watch = nullptr; }
  ~Unstoppable() { errand().watch = watch_; }
  Unstoppable(const Unstoppable&) = delete;
  Unstoppable& operator=(const Unstoppable&) = delete;

 private:
  const Watch* watch_;
};

}  // namespace lipscope

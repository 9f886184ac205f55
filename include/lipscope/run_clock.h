// SPDX-License-Identifier: Apache-2.0
// The one clock, the one limit and the one stop signal of a run.
//
//   RunContext context{.clock = RunClock::by_work(1)};   // the same answer on every machine load
#pragma once

#include <memory>
#include <stop_token>

namespace lipscope {

class Watch;

// Counts seconds from its making: by the wall, or by the work that the run has done. Only the wall
// knows how busy the machine is; only work is the same in every run.
class RunClock {
 public:
  // `limit`: seconds after which the run should end; infinity for none.
  [[nodiscard]] static std::shared_ptr<const RunClock> by_wall(double limit,
                                                               std::stop_token stop = {});
  // A budget of work: 1 is about what the program does by default for a small image classifier. The
  // clock shows the seconds that the work takes one core of a usual machine.
  [[nodiscard]] static std::shared_ptr<const RunClock> by_work(double effort,
                                                               std::stop_token stop = {});
  virtual ~RunClock() = default;

  // Seconds. Of a clock by work: as seen by the calling thread, which does not notice others.
  [[nodiscard]] virtual double now() const = 0;
  [[nodiscard]] virtual bool counts_work() const = 0;
  [[nodiscard]] double limit() const { return limit_; }
  [[nodiscard]] bool stop_requested() const { return stop_.stop_requested(); }
  // Whether it is `time` already, or the run is to stop. To be asked in loops: under a budget of
  // work, asking counts as some.
  [[nodiscard]] bool passed(double time) const;

 protected:
  RunClock(double limit, std::stop_token stop) : limit_(limit), stop_(std::move(stop)) {}

 private:
  double limit_;
  std::stop_token stop_;
};

// While alive, the calling thread works for the run of the clock, and its long loops end by an
// exception as soon as the clock shows `cut`, or a moment after a stop request.
class RunScope {
 public:
  RunScope(const RunClock& clock, double cut);
  ~RunScope();
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

 private:
  const Watch* watch_;
  double cut_, work_, start_;
  bool inner_;
};

// A little later than `deadline`, so that what ends by itself can still say what it has.
[[nodiscard]] double cut_after(double deadline, double seconds);

}  // namespace lipscope

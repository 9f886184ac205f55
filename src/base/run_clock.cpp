// SPDX-License-Identifier: Apache-2.0
#include "lipscope/run_clock.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>

#include "base/checkpoint.h"
#include "base/memory_budget.h"

namespace lipscope {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kOperationsPerSecond = 1e9;
constexpr double kSecondsOfEffort = 20;
constexpr double kWorkOfAsking = 1e3;  // operations
// What ends by itself after a stop request has this long before it is ended.
constexpr double kGraceOfStop = 0.25;  // seconds

double wall_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Watches over the threads of the run.
class WatchingClock : public RunClock, public Watch {
 public:
  WatchingClock(double limit, std::stop_token stop) : RunClock(limit, std::move(stop)) {}

  void look(const Errand& errand) const override {
    if (seconds_of(errand) >= errand.cut) throw Stopped{StopCause::kTime};
    if (memory_exceeded()) throw Stopped{StopCause::kMemory};
    if (!stop_requested()) return;
    const double wall = wall_since(start_);
    double since = stopped_at_.load();
    if (std::isinf(since) && stopped_at_.compare_exchange_strong(since, wall)) return;
    if (wall > since + kGraceOfStop) throw Stopped{StopCause::kInterrupt};
  }

 protected:
  virtual double seconds_of(const Errand& errand) const = 0;
  friend class lipscope::RunScope;
  mutable std::atomic<double> done_ = 0;  // work, before and between scopes
  Clock::time_point start_ = Clock::now();

 private:
  mutable std::atomic<double> stopped_at_ = HUGE_VAL;
};

class WallClock final : public WatchingClock {
 public:
  using WatchingClock::WatchingClock;
  double now() const override { return wall_since(start_); }
  bool counts_work() const override { return false; }

 private:
  double seconds_of(const Errand&) const override { return wall_since(start_); }
};

class WorkClock final : public WatchingClock {
 public:
  using WatchingClock::WatchingClock;
  double now() const override {
    return errand().watch == this ? seconds_of(errand()) : done_ / kOperationsPerSecond;
  }
  bool counts_work() const override { return true; }

 private:
  double seconds_of(const Errand& errand) const override {
    return errand.work / kOperationsPerSecond;
  }
};

}  // namespace

std::shared_ptr<const RunClock> RunClock::by_wall(double limit, std::stop_token stop) {
  return std::make_shared<WallClock>(limit, std::move(stop));
}

std::shared_ptr<const RunClock> RunClock::by_work(double effort, std::stop_token stop) {
  return std::make_shared<WorkClock>(effort * kSecondsOfEffort, std::move(stop));
}

bool RunClock::passed(double time) const {
  checkpoint(kWorkOfAsking);
  return stop_requested() || now() >= time;
}

// A clock by work counts on where an outer scope or an earlier one stands.
RunScope::RunScope(const RunClock& clock, double cut)
    : watch_(errand().watch), cut_(errand().cut), work_(errand().work) {
  const auto& watch = dynamic_cast<const WatchingClock&>(clock);
  inner_ = &watch == watch_;
  start_ = inner_ ? work_ : watch.done_.load();
  errand() = {&watch, start_, inner_ ? std::min(cut, cut_) : cut};
}

RunScope::~RunScope() {
  const double work = errand().work;
  if (!inner_) static_cast<const WatchingClock*>(errand().watch)->done_ = work;
  errand() = {watch_, work_ + (work - start_), cut_};
}

double cut_after(double deadline, double seconds) {
  return deadline + std::clamp(0.03 * seconds, 0.1, 1.0);
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Time for one of many things that are alike: samples, pairs of classes.
#pragma once

#include <optional>

#include "base/checkpoint.h"
#include "lipscope/run_clock.h"

namespace lipscope {

// By the wall they share what the run has. Under a budget of work each has a budget of its own, so
// that what is found for it does not depend on how many others there are, nor on what they need.
class OwnBudget {
 public:
  // `until`: by the run's clock; `seconds`: of work, where work is counted.
  OwnBudget(const RunClock& run, double until, double seconds) : run_(run), end_(until) {
    if (!run.counts_work()) return;
    own_ = RunClock::by_work(1e6);  // its limit is ours
    before_ = errand().work;
    scope_.emplace(*own_, HUGE_VAL);
    end_ = seconds;
  }
  ~OwnBudget() {
    if (!own_) return;
    scope_.reset();
    errand().work = before_;  // it was not the run's
  }
  OwnBudget(const OwnBudget&) = delete;
  OwnBudget& operator=(const OwnBudget&) = delete;

  [[nodiscard]] const RunClock& clock() const { return own_ ? *own_ : run_; }
  [[nodiscard]] std::shared_ptr<const RunClock> shared(std::shared_ptr<const RunClock> run) const {
    return own_ ? own_ : std::move(run);
  }
  [[nodiscard]] double end() const { return end_; }
  [[nodiscard]] double seconds_left() const { return over() ? 0 : end_ - clock().now(); }
  // Throws nothing: what was found so far is to be kept.
  [[nodiscard]] bool over() const {
    return run_.stop_requested() || (own_ ? own_->passed(end_) : run_.now() >= end_);
  }

 private:
  const RunClock& run_;
  double end_, before_ = 0;
  std::shared_ptr<const RunClock> own_;
  std::optional<RunScope> scope_;
};

}  // namespace lipscope

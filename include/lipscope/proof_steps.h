// SPDX-License-Identifier: Apache-2.0
// What proves an operator norm: the theorems it rests on, each with the bound it gave.
//
// The number a theorem gives depends on what went into it: a shift found by an iteration, a budget
// of work, the order in which a BLAS adds. The steps keep that number. Who follows them takes the
// same theorems in the same order and proves each bound as it stands, with one factorisation where
// the finder iterated, so that nothing depends on how the numbers were found.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lipscope {

struct ProofStep {
  std::string theorem;  // names its label in docs/theory
  double at_most = 0;   // what it bounds, or how often it is applied
  friend bool operator==(const ProofStep&, const ProofStep&) = default;
};

// Steps to be written by who finds a bound, or given to who proves it again.
class ProofSteps {
 public:
  ProofSteps() = default;
  explicit ProofSteps(std::vector<ProofStep> given) : steps_(std::move(given)), given_(true) {}

  [[nodiscard]] bool given() const { return given_; }
  [[nodiscard]] const std::vector<ProofStep>& list() const { return steps_; }

  // Of steps to be written.
  void add(std::string_view theorem, double at_most) {
    steps_.push_back({std::string(theorem), at_most});
  }
  void append(const ProofSteps& other) {
    steps_.insert(steps_.end(), other.steps_.begin(), other.steps_.end());
  }

  // Of given steps: the theorem that comes next (empty behind the last), and its number, which is
  // then done with.
  [[nodiscard]] std::string_view theorem() const {
    return next_ < steps_.size() ? std::string_view(steps_[next_].theorem) : std::string_view();
  }
  [[nodiscard]] double take() { return steps_[next_++].at_most; }
  [[nodiscard]] bool finished() const { return next_ == steps_.size(); }

 private:
  std::vector<ProofStep> steps_;
  bool given_ = false;
  std::size_t next_ = 0;
};

}  // namespace lipscope

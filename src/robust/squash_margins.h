// SPDX-License-Identifier: Apache-2.0
// What a final Softmax, LogSoftmax or Sigmoid does to a decision when it is computed
// [robustness-10].
#pragma once

#include "lipscope/select.h"
#include "machine/arithmetic.h"

namespace lipscope {

class SquashMargins {
 public:
  SquashMargins(const Machine& machine, SquashKind squash, std::size_t classes);

  // How much larger the computed logit of the winner has to be than that of a rival for the result
  // of the squash to be larger, too; infinity where nothing suffices. The logits as computed lie in
  // these intervals, those of all classes are at most `largest` in absolute value.
  [[nodiscard]] double needed(const Interval& winner, const Interval& rival, double largest) const;

 private:
  [[nodiscard]] bool suffices(double margin, const Interval& winner, const Interval& rival,
                              double largest) const;
  // What is left of a margin after the largest logit was subtracted.
  [[nodiscard]] double kept(double margin) const;
  [[nodiscard]] bool softmax_tells(double margin) const;
  [[nodiscard]] bool log_softmax_tells(double margin, double largest) const;
  [[nodiscard]] bool sigmoid_tells(double margin, const Interval& winner,
                                   const Interval& rival) const;

  Machine machine_;
  SquashKind kind_;
  double ulps_, small_;  // of functions of the library: relative, absolute
  double sum_;           // of exponentials, as computed, at most
};

}  // namespace lipscope

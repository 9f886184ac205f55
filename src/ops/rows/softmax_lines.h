// SPDX-License-Identifier: Apache-2.0
// Lines on one side of the logistic function s(t) = 1 / (1 + exp(-t)) and of log s(t) on an
// interval [softmax-17].
#pragma once

#include "base/interval.h"

namespace lipscope {

// height + slope (t - at).
struct LogisticLine {
  double slope = 0, at = 0, height = 0;
  [[nodiscard]] Interval operator()(const Interval& t) const {
    return point(height) + slope * (t - at);
  }
};

// Rising lines on one side of the function everywhere on the bounded interval, as near to it at
// `at`, a point of the interval, as a line can be.
[[nodiscard]] LogisticLine line_above_logistic(const Interval& range, double at);
[[nodiscard]] LogisticLine line_below_logistic(const Interval& range, double at);
[[nodiscard]] LogisticLine line_below_log_logistic(const Interval& range, double at);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// A softmax as functions of differences of its inputs, as far as derivatives go [pieces-11].
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/interval.h"
#include "lipscope/op.h"

namespace lipscope {

// A function of single entries whose slopes say more when the values of all entries are known:
// Op::joint_slopes.
class JointSlopes {
 public:
  virtual ~JointSlopes() = default;
  [[nodiscard]] virtual std::size_t units() const = 0;
  // Narrows the slopes of all units to what occurs while their values are in the ranges.
  virtual void narrow(std::span<const Interval> values, std::span<Interval> slopes) const = 0;
  // Not below any sum of the slopes times these weights, none of them negative, there.
  [[nodiscard]] virtual double most(std::span<const Interval> values,
                                    std::span<const double> weights) const = 0;
};

// The value x_plus - x_minus of two inputs.
struct SoftmaxPair {
  Index plus = 0, minus = 0;
};

// An Elementwise with JointSlopes. Its slope at a pair is the product of both probabilities; for
// log-probabilities that of `plus`. It stands for derivatives only and has no values.
[[nodiscard]] std::shared_ptr<const Op> make_softmax_pairs(bool log, Index classes,
                                                           const std::vector<SoftmaxPair>& pairs);

}  // namespace lipscope

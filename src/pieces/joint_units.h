// SPDX-License-Identifier: Apache-2.0
// Units whose slopes depend on one another: those of a softmax at the end [pieces-11].
#pragma once

#include "net/layered_net.h"

namespace lipscope {

class JointSlopes;

// All units of one such function, which stand one after another in a layer.
struct JointUnits {
  const JointSlopes* slopes = nullptr;
  std::size_t begin = 0, end = 0;
};
// Nothing where there are none, or where some were left out as useless.
[[nodiscard]] std::optional<JointUnits> joint_units(const DenseLayer& layer);

// Narrows the slopes of a layer for values in the ranges.
void narrow_jointly(const DenseLayer& layer, const std::vector<Interval>& values,
                    std::vector<Interval>& slopes);

// For a network whose last units are all such ones, on values in the ranges: a number c with
// |J|_{p:q} <= c |H|_{p:inf} for the network H that ends before them. Nothing for other networks.
[[nodiscard]] std::optional<double> joint_gain_up(const LayeredNet& net,
                                                  const std::vector<Interval>& values,
                                                  const Norm& out);
[[nodiscard]] LayeredNet before_last_units(const LayeredNet& net);

}  // namespace lipscope

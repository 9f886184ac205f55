// SPDX-License-Identifier: Apache-2.0
#include "pieces/joint_units.h"

#include <cmath>

#include "base/rounding.h"
#include "ops/elementwise/elementwise.h"
#include "ops/rows/softmax_pairs.h"

namespace lipscope {

std::optional<JointUnits> joint_units(const DenseLayer& layer) {
  for (std::size_t i = 0; i < layer.phi.size(); ++i) {
    if (!std::isnan(layer.below[i])) continue;
    const JointSlopes* joint = layer.phi[i] != nullptr ? layer.phi[i]->joint_slopes() : nullptr;
    if (joint == nullptr) continue;
    std::size_t end = i + 1;
    while (end < layer.phi.size() && layer.phi[end] == layer.phi[i]) ++end;
    if (end - i != joint->units()) return std::nullopt;
    return JointUnits{joint, i, end};
  }
  return std::nullopt;
}

void narrow_jointly(const DenseLayer& layer, const std::vector<Interval>& values,
                    std::vector<Interval>& slopes) {
  const auto units = joint_units(layer);
  if (!units) return;
  const std::size_t count = units->end - units->begin;
  units->slopes->narrow(std::span(values).subspan(units->begin, count),
                        std::span(slopes).subspan(units->begin, count));
}

std::optional<double> joint_gain_up(const LayeredNet& net, const std::vector<Interval>& values,
                                    const Norm& out) {
  if (net.hidden() == 0) return std::nullopt;
  const auto units = joint_units(net.layers[net.hidden() - 1]);
  if (!units || units->end - units->begin != values.size()) return std::nullopt;
  const DenseLayer& last = net.layers.back();
  std::vector<double> sums;
  for (Index i = 0; i < last.out; ++i) {
    std::vector<double> weights;
    for (std::size_t u = 0; u < values.size(); ++u) {
      const double radius = last.radius.empty() ? 0 : last.radius_row(i)[u];
      weights.push_back(add_up(std::fabs(last.row(i)[u]), radius));
    }
    sums.push_back(units->slopes->most(values, weights));
  }
  return pnorm_up(sums, out.p());
}

LayeredNet before_last_units(const LayeredNet& net) {
  LayeredNet head = net;
  head.layers.pop_back();
  DenseLayer& last = head.layers.back();
  last.below.clear();
  last.above.clear();
  last.slopes.clear();
  last.phi.clear();
  return head;
}

}  // namespace lipscope

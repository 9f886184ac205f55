// SPDX-License-Identifier: Apache-2.0
#include "robust/batch_norm_rounding.h"

#include <algorithm>

#include "ops/batch_normalization.h"
#include "pieces/small.h"

namespace lipscope {

BatchNormRounding::BatchNormRounding(const Graph& graph, const Node& node,
                                     const NumberFormat& format)
    : format_(format) {
  const Shape& shape = graph.value(node.inputs[0]).type.shape;
  const Index length = element_count(graph.value(node.inputs[1]).type.shape);
  for (std::size_t c = 0; c < at(length); ++c) channels_.push_back(channel(graph, node, c));
  const Index runs = shape[0] * length;
  if (runs > 0) inner_ = std::max<std::size_t>(1, at(element_count(shape) / runs));
}

BatchNormRounding::Channel BatchNormRounding::channel(const Graph& graph, const Node& node,
                                                      std::size_t c) const {
  const auto parameter = [&](std::size_t k) -> Interval {
    const Box box = graph.value(node.inputs[k]).constant->box();
    return {box.lower.doubles()[c], box.upper.doubles()[c]};
  };
  const Interval scale = parameter(1), bias = parameter(2), mean = parameter(3);
  const Interval variance = parameter(4), epsilon = point(*batch_normalization_epsilon(*node.op));
  const auto fl = [&](const Interval& x) { return format_.rounded(x); };
  const Interval sum = fl(fl(variance) + fl(epsilon));
  Channel made;
  if (!(sum.lo > 0) || !(sum.hi < format_.most)) {
    made.drift = kInf;
    return made;
  }
  const Interval inverse = fl(point(1) / fl(sqrt(sum)));
  const Interval factor = fl(fl(scale) * inverse), real = scale / sqrt(variance + epsilon);
  made.factor = magnitude(factor);
  made.drift = magnitude(factor - real);
  made.scale = magnitude(fl(scale));
  made.inverse = magnitude(inverse);
  made.mean = magnitude(fl(mean));
  made.bias = magnitude(fl(bias));
  made.mean_drift = format_.error_of(magnitude(mean));
  made.bias_drift = format_.error_of(magnitude(bias));
  return made;
}

double BatchNormRounding::error(std::size_t i, double size, double before) const {
  constexpr double kRoundings = 8;  // of any term on its way, at most
  const Channel& c = channels_[i / inner_ % channels_.size()];
  if (!(c.drift < kInf)) return kInf;
  const double input = add_up(size, before), shifted = add_up(input, c.mean);
  const double all = add_up(mul_up(shifted, c.factor), c.bias);
  for (const double part : {all, mul_up(shifted, c.inverse), mul_up(shifted, c.scale), shifted,
                            c.inverse, c.scale, c.factor}) {
    if (!(mul_up(2, part) < format_.most)) return kInf;
  }
  const double moved = mul_up(c.factor, add_up(before, c.mean_drift));
  const double factors = mul_up(c.drift, add_up(size, c.mean));
  const double lost =
      div_up(mul_up(kRoundings, format_.unit), sub_down(1, mul_up(kRoundings, format_.unit)));
  const double underflow = mul_up(mul_up(kRoundings, format_.tiny),
                                  add_up(add_up(1, c.factor), add_up(c.scale, c.inverse)));
  return add_up(add_up(add_up(moved, factors), add_up(c.bias_drift, mul_up(lost, all))), underflow);
}

}  // namespace lipscope

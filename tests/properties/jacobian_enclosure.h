// SPDX-License-Identifier: Apache-2.0
// |J(x) v| / |v| from below, proved: forward differentiation in interval arithmetic.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "bounds/derivative_boxes.h"

namespace lipscope::properties {

// Nothing when an operator on the way tells neither its matrix nor its slopes.
inline std::optional<double> proved_stretch(const Graph& graph, const NormPair& norms,
                                            std::span<const double> at,
                                            std::span<const double> direction) {
  std::vector<Box> boxes;
  for (const Tensor& tensor : split_inputs(graph, at)) boxes.push_back({tensor, tensor});
  const auto moved = DerivativeBoxes(graph, boxes).push(direction, graph.outputs()[0]);
  if (!moved) return std::nullopt;
  std::vector<double> least;
  for (const Interval& entry : *moved) {
    const double size = mignitude(entry);
    least.push_back(std::isfinite(size) ? size : 0);
  }
  const double length = pnorm_up(direction, norms.in.p());
  return length > 0 ? div_down(pnorm_down(least, norms.out.p()), length) : 0;
}

}  // namespace lipscope::properties

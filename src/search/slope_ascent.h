// SPDX-License-Identifier: Apache-2.0
// Lines and multipliers of SlopeBounds chosen by gradients [local-17], [robustness-3].
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "pieces/slope_bounds.h"

namespace lipscope {

class SlopeAscent : public SlopeBounds {
 public:
  using SlopeBounds::SlopeBounds;

  // What one ascent of many parts leaves behind, besides.
  struct Pass : SlopeBounds::Pass {
    std::vector<std::vector<double>> z;  // before the units, at the minimiser of the bound
    std::vector<double> first, second;   // moments of the gradients
    bool remember = false;
    std::vector<std::vector<float>> best;  // then: the mixes that raise() found best, by part
  };

  // Raises the bounds of parts, in at most `steps` steps, less where all are above `enough` (by
  // target).
  void raise(const Targets& targets, std::span<Part> parts, std::span<const double> enough,
             int steps, const std::function<bool()>& stop, Pass& pass) const;

 private:
  void forward(Pass& pass, std::size_t layers) const;
  void ascend(std::span<Part> parts, Pass& pass, int step, std::size_t layers) const;
};

}  // namespace lipscope

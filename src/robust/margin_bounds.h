// SPDX-License-Identifier: Apache-2.0
// Lower bounds of the margins f_c - f_j on a ball, and on parts of it where units have a sign: by
// linear bounds propagated back to the input, their free lines and multipliers chosen by gradients
// [robustness-3].
#pragma once

#include <functional>
#include <vector>

#include "lipscope/bound.h"
#include "search/slope_ascent.h"

namespace lipscope {

class MarginBounds {
 public:
  // The ball where some units have a sign; `target` is the rival, `split` the unit that costs most.
  // f_winner - f_target is at least `bound`, proved.
  using Part = SlopeAscent::Part;

  // Borrows the network. The norm is that of the ball. `stop` costs tightness only.
  MarginBounds(
      const LayeredNet& net, const Ball& ball, Index winner,
      std::function<bool()> stop = [] { return false; });
  // All values on the ball are bounded.
  [[nodiscard]] bool usable() const { return usable_; }
  [[nodiscard]] std::size_t unstable_units() const { return ascent_.open().size(); }

  // The whole ball.
  [[nodiscard]] Part whole(Index rival) const { return ascent_.whole(rival); }
  // Whether a point has the signs of a part, up to rounding.
  [[nodiscard]] bool has_signs(const Part& part, const std::vector<double>& point) const;
  // Raises the bounds of parts, in at most `steps` steps, less where all are above `enough` (by
  // rival). Parts that have no side left to choose have `split` = unstable_units().
  void raise(std::span<Part> parts, std::span<const double> enough, int steps) const;

 private:
  void sharpen();
  [[nodiscard]] SlopeAscent::Targets margin_targets(Index winner) const;
  void choose_splits(std::span<Part> parts, const SlopeAscent::Pass& pass) const;

  const LayeredNet& net_;
  std::function<bool()> stop_;
  DomainSupport domain_;
  PreactivationBounds bounds_;
  SlopeAscent ascent_;
  bool usable_ = false;
  SlopeAscent::Targets margins_;  // by rival
};

}  // namespace lipscope

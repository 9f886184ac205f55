// SPDX-License-Identifier: Apache-2.0
// Lower bounds of the margins f_c - f_j on a ball, and on parts of it where units have a sign: by
// linear bounds propagated back to the input, their free slopes and multipliers chosen by gradients
// [robustness-3].
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lipscope/bound.h"
#include "pieces/forward_bounds.h"

namespace lipscope {

class MarginBounds {
 public:
  // The ball where some units have a sign. Vectors have an entry per open unit.
  struct Part {
    Index rival = 0;                 // or the number of another function to be bounded
    std::vector<std::int8_t> signs;  // 0: both
    std::vector<float> slopes;       // of the bound on the side of the kink
    std::vector<float> multipliers;  // of the signs; >= 0
    double bound = -kInf;            // f_winner - f_rival is at least this, proved
    std::size_t split = 0;           // the unit that costs most
  };

  // Borrows the network. The norm is that of the ball. `stop` costs tightness only.
  MarginBounds(
      const LayeredNet& net, const Ball& ball, Index winner,
      std::function<bool()> stop = [] { return false; });
  // All values on the ball are bounded.
  [[nodiscard]] bool usable() const { return usable_; }
  [[nodiscard]] std::size_t open_units() const { return open_.size(); }

  // The whole ball.
  [[nodiscard]] Part whole(Index rival) const;
  // Whether a point has the signs of a part, up to rounding.
  [[nodiscard]] bool has_signs(const Part& part, const std::vector<double>& point) const;
  // Raises the bounds of parts, in at most `steps` steps, less where all are above `enough` (by
  // rival). Parts that have no side left to choose have `split` = open_units().
  void raise(std::span<Part> parts, std::span<const double> enough, int steps) const;

 private:
  struct Pass;
  // Functions to bound from below: of the values behind the units before `layer`.
  struct Targets {
    std::size_t layer = 0;
    std::vector<double> rows, constants;
  };
  void sharpen_ranges();
  void number_open_units();
  [[nodiscard]] Targets unit_targets(std::size_t layer,
                                     const std::vector<std::size_t>& places) const;
  [[nodiscard]] Targets margin_targets(Index winner) const;
  void raise(const Targets& targets, std::span<Part> parts, std::span<const double> enough,
             int steps, Pass& pass) const;
  void backward(const Targets& targets, std::span<Part> parts, Pass& pass) const;
  void forward(Pass& pass, std::size_t layers) const;
  void ascend(std::span<Part> parts, Pass& pass, int step, std::size_t layers) const;
  void choose_splits(std::span<Part> parts, const Pass& pass) const;

  const LayeredNet& net_;
  std::function<bool()> stop_;
  std::vector<double> center_;
  double radius_;
  Norm norm_;
  double dual_down_;  // at most the dual exponent
  DomainSupport domain_;
  ForwardBounds bounds_;
  bool usable_ = false;
  Targets margins_;  // by rival
  std::vector<UnitId> open_;
  std::vector<std::vector<Index>> number_;  // among the open units, by layer and place; -1: none
};

}  // namespace lipscope

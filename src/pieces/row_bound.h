// SPDX-License-Identifier: Apache-2.0
// Bounds of the gradient of one output from linear bounds of the backward pass: each product of a
// slope and a value that both vary lies below the chord of its larger end [pieces-3].
#pragma once

#include <vector>

#include "net/layered_net.h"

namespace lipscope {

// The norm of the gradient that is asked for.
enum class GradientNorm { kOne, kMax };

// What stands for a product of a slope and a value of either sign: its chord, or the largest
// product [local-9].
enum class MixedProduct { kChord, kConstant };

class RowBound {
 public:
  RowBound(const LayeredNet& net, GradientNorm norm, MixedProduct mixed = MixedProduct::kChord);

  // Upper bound of the norm of the gradient of output `row`, for all slopes in the intervals, all
  // rounding included. `signs`: of entries of the gradient that a call for a larger set of slopes
  // found to have one sign (0: not known), or empty; updated. Not for two threads at once.
  [[nodiscard]] double upper_bound(const Slopes& slopes, Index row, std::vector<float>& signs);
  // Enclosures of the entries of the gradient, or of its derivatives by the values behind the first
  // units: those times the first weights are the gradient. Not for a network without units.
  [[nodiscard]] std::vector<Interval> entries(const Slopes& slopes, Index row);
  [[nodiscard]] std::vector<Interval> behind_first_units(const Slopes& slopes, Index row);
  // Enclosures of the derivatives by the values behind units, by layer, of the last call.
  [[nodiscard]] const std::vector<std::vector<Interval>>& pulls() const { return pull_; }
  // How much of the last bound is due to the unit's freedom.
  [[nodiscard]] double weight(UnitId unit) const { return weight_[unit.layer][unit.place]; }

 private:
  // d v <= slope v + offset and d v >= slope v + offset for v in its range and d in its interval,
  // by unit; the upper offsets are at least 0, the lower ones at most.
  struct Lines {
    std::vector<double> up_slope, up_offset, down_slope, down_offset;
  };

  void set_all_lines(const Slopes& slopes, Index row);
  void set_pull(std::size_t layer, const Slopes& slopes, Index row);
  void set_lines(std::size_t layer, const std::vector<Interval>& slopes);
  // Upper bounds of the rows of `eta` (count x width of the layer) applied to what leaves the units
  // of the layer; the weights of units are remembered when asked.
  void bound_above(std::size_t layer, std::vector<double>& eta, Index count,
                   std::vector<double>& result, bool remember);
  // Both ends of W'u for what leaves the units of the layer: the given rows of W', all if empty.
  void enclose(std::size_t layer, const std::vector<Index>& which, std::vector<Interval>& result);
  [[nodiscard]] double largest_entry(const std::vector<Interval>& gradient);
  [[nodiscard]] double sum_of_entries(const std::vector<Index>& open,
                                      const std::vector<Interval>& gradient,
                                      const std::vector<float>& signs);

  const LayeredNet& net_;
  GradientNorm norm_;
  MixedProduct mixed_;
  std::vector<std::vector<double>> turned_;   // weights of each layer, transposed
  std::vector<std::vector<Interval>> pull_;   // values before the slopes, by hidden layer
  std::vector<std::vector<double>> reach_;    // bounds of sums of |W| |u|, by hidden layer
  std::vector<std::vector<double>> outer_;    // largest |u| behind the slopes
  std::vector<std::vector<double>> freedom_;  // how far a choice of the slope moves the product
  std::vector<Lines> lines_;
  std::vector<std::vector<double>> weight_;
  std::vector<double> positive_, negative_, table_, sums_, next_;  // scratch
};

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Functions of a value bounded side by side, with lines and multipliers chosen by steps along
// gradients [local-15], [local-16]; for the files linear_*.cpp alone.
#pragma once

#include <span>
#include <vector>

#include "bounds/linear_forms.h"

namespace lipscope {

class LinearAscent {
 public:
  using Table = std::vector<std::vector<double>>;

  // Borrows the bounds, which have forms of all nodes up to the value, and the cuts, if any.
  LinearAscent(const LinearBounds& bounds, ValueId value, std::span<const double> rows,
               RowCuts* cuts = nullptr);

  // By node: the share of its other lines, between 0 and 1.
  [[nodiscard]] Table& mix() { return mix_; }
  // Lower bounds for the present choice, proved.
  [[nodiscard]] std::vector<double> bounds();
  // By node: the weights of its first output in the last bounds(); empty where it has none.
  [[nodiscard]] const Table& weights() const { return kept_; }
  // By value: what the chosen affine functions are where the last bounds() are taken.
  [[nodiscard]] Table values() const;
  // Moves the choice; `way` is the initial step, as a fraction of the range.
  void move(int step, int steps, double way);

 private:
  struct Pace;
  void forward(std::size_t node, std::size_t output, Table& values) const;
  void move_shares(const Pace& pace, const Table& values);
  void move_multipliers(const Pace& pace, const Table& values);

  const LinearBounds& bounds_;
  ValueId value_;
  std::span<const double> given_;
  RowCuts* cuts_;
  std::size_t size_, count_;
  LinearBounds::Rows rows_;
  Table mix_, first_, second_, kept_;
};

}  // namespace lipscope

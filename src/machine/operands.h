// SPDX-License-Identifier: Apache-2.0
// What sums are made of, in the format of sums.
#pragma once

#include "machine/step.h"

namespace lipscope {

struct Operand {
  double lower, upper;  // of the real number
  double size, error;   // of the real number, and how far the computed one is off
};

// Entries of a value, rounded to the format of sums where that does not hold them all.
class Operands {
 public:
  Operands(const Machine& machine, const ComputedView& view);

  // No entry overflows.
  [[nodiscard]] bool finite() const noexcept { return finite_; }
  [[nodiscard]] Operand at(std::size_t i) const {
    return {view_.lower[i], view_.upper[i], size_[i], error_[i]};
  }

 private:
  ComputedView view_;
  std::vector<double> size_, converted_;
  std::span<const double> error_;
  bool finite_ = true;
};

// For what may be done in the format of values or in that of sums: the worse of both.
class EitherFormat {
 public:
  explicit EitherFormat(const Machine& machine);

  [[nodiscard]] double unit() const noexcept { return unit_; }
  [[nodiscard]] double lost() const noexcept { return lost_; }
  [[nodiscard]] double most() const noexcept { return most_; }
  // How far a number can be off after a rounding.
  [[nodiscard]] Computed converted(const Computed& x) const;
  [[nodiscard]] Computed product(const Computed& a, const Computed& b) const;

 private:
  double unit_, lost_, most_;
  bool exact_;  // the format of sums holds all values
};

}  // namespace lipscope

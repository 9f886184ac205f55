// SPDX-License-Identifier: Apache-2.0
// One operator as a machine computes it.
#pragma once

#include <span>
#include <vector>

#include "machine/arithmetic.h"

namespace lipscope {

// Entries of a value. Errors are finite or infinity, never NaN.
struct ComputedView {
  std::span<const double> lower, upper;  // of the real numbers
  std::span<const double> error;

  [[nodiscard]] std::size_t size() const { return lower.size(); }
  [[nodiscard]] Computed at(std::size_t i) const { return {{lower[i], upper[i]}, error[i]}; }
  [[nodiscard]] Interval real(std::size_t i) const { return {lower[i], upper[i]}; }
};

class MachineStep {
 public:
  virtual ~MachineStep() = default;
  // The errors of the result. `real` holds its real numbers, entry by entry. Whether results stay
  // inside the format is for the caller to look at; what comes before them is looked at here.
  virtual void run(std::span<const ComputedView> in, const ComputedView& real,
                   std::span<double> error) const = 0;
};

}  // namespace lipscope

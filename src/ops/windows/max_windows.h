// SPDX-License-Identifier: Apache-2.0
// Operators whose output entries are each the largest of some input entries.
#pragma once

#include <vector>

#include "lipscope/tensor.h"

namespace lipscope {

// Op::max_windows.
class MaxWindows {
 public:
  virtual ~MaxWindows() = default;
  // For each output entry the input entries it is the largest of.
  [[nodiscard]] virtual std::vector<std::vector<Index>> windows() const = 0;
};

}  // namespace lipscope

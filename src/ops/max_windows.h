// SPDX-License-Identifier: Apache-2.0
// Operators whose output entries are each the largest of some input entries.
#pragma once

#include <optional>
#include <vector>

#include "lipscope/op.h"

namespace lipscope {

// Found by dynamic_cast.
class MaxWindows {
 public:
  virtual ~MaxWindows() = default;
  // For each output entry the input entries it is the largest of.
  [[nodiscard]] virtual std::vector<std::vector<Index>> windows() const = 0;
};

// Nothing for any other operator.
[[nodiscard]] inline std::optional<std::vector<std::vector<Index>>> max_windows(const Op& op) {
  const auto* pool = dynamic_cast<const MaxWindows*>(&op);
  return pool == nullptr ? std::nullopt : std::optional(pool->windows());
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// How operators are computed in floating-point arithmetic [robustness-6].
#pragma once

#include <functional>
#include <memory>

#include "lipscope/tensor.h"
#include "machine/step.h"

namespace lipscope {

// Op::machine_map. An operator without it has no known rounding.
class MachineMap {
 public:
  virtual ~MachineMap() = default;
  // For one output; null when its rounding is not known.
  [[nodiscard]] virtual std::unique_ptr<const MachineStep> machine_step(
      const Machine& machine, std::size_t output) const = 0;
};

// visit(result, input, entry): the result is a copy of the entry.
using CopyVisitor = std::function<void(Index, Index, Index)>;
using Copies = std::function<void(const CopyVisitor&)>;

// Copies of entries; results that nothing is copied to are the number `fill`.
[[nodiscard]] std::unique_ptr<const MachineStep> copy_step(const Machine& machine, Copies copies,
                                                           double fill = 0);
// The largest or smallest of some entries each: the errors of all of them count.
[[nodiscard]] std::unique_ptr<const MachineStep> selection_step(Copies candidates);

}  // namespace lipscope

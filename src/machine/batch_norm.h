// SPDX-License-Identifier: Apache-2.0
// The rounding of a BatchNormalization that was not merged into its neighbours [robustness-8].
#pragma once

#include <memory>

#include "machine/step.h"

namespace lipscope {

// Inputs: x, scale, bias, mean, variance. Entry i of x belongs to channel i / inner % channels.
// Computed as x s + t, or as (x - mean) scale / deviation + bias with the factors in any order.
[[nodiscard]] std::unique_ptr<const MachineStep> batch_norm_step(const Machine& machine,
                                                                 std::size_t channels,
                                                                 std::size_t inner, double epsilon);

}  // namespace lipscope

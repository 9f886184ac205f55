// SPDX-License-Identifier: Apache-2.0
// Nodes at constants.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lipscope/constant.h"

namespace lipscope {

// The outputs of an operator at constants, with all that rounding may have hidden. Null for an
// output of integers that what is known of the constants does not decide.
[[nodiscard]] std::vector<std::shared_ptr<const Constant>> fold(
    const std::shared_ptr<const Op>& op, std::span<const std::shared_ptr<const Constant>> inputs,
    std::span<const ValueType> out_types);

}  // namespace lipscope

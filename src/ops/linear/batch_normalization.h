// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "lipscope/op.h"

namespace lipscope {

// The epsilon of a BatchNormalization; nothing for any other operator.
[[nodiscard]] std::optional<double> batch_normalization_epsilon(const Op& op);

}  // namespace lipscope

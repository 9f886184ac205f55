// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "lipscope/op.h"

namespace lipscope {

// For each output entry of a MaxPool or GlobalMaxPool the input entries it is the largest of;
// nothing for any other operator.
[[nodiscard]] std::optional<std::vector<std::vector<Index>>> max_windows(const Op& op);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "lipscope/op.h"
#include "ops/rows/rows.h"

namespace lipscope {

// Of a DequantizeLinear: the axis along which scale and zero point have their entries, as the
// middle one. Nothing for any other operator.
[[nodiscard]] std::optional<RowSplit> dequantize_split(const Op& op);

}  // namespace lipscope

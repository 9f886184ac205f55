// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lipscope/op.h"

namespace lipscope {

// Whether any two outputs differ by as much as the inputs of the same places: a LogSoftmax of a
// single row.
[[nodiscard]] bool keeps_differences(const Op& op);

// What a Softmax or LogSoftmax of a single row gives; nothing for any other operator.
enum class SingleSoftmax { kProbabilities, kLogarithms };
[[nodiscard]] std::optional<SingleSoftmax> single_softmax(const Op& op);

}  // namespace lipscope

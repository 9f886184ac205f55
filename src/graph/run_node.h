// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "lipscope/op.h"

namespace lipscope {

// View of `count` samples held one after another in `tensor`; `type` is that of one sample.
// count = 0: one sample shared by all.
[[nodiscard]] ConstView view_samples(const ValueType& type, const Tensor& tensor, Index count);
[[nodiscard]] MutView view_samples(const ValueType& type, Tensor& tensor, Index count);

// Evaluates one operator on one sample in float64.
[[nodiscard]] std::vector<Tensor> run_node(const Op& op, std::span<const Tensor* const> inputs,
                                           std::span<const ValueType> out_types);

}  // namespace lipscope

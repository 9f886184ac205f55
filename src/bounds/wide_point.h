// SPDX-License-Identifier: Apache-2.0
// Products with the Jacobian of a graph at a point in wide numbers: for networks so deep that
// intervals of doubles grow beyond use [attention-21].
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/interval.h"
#include "lipscope/graph.h"

namespace lipscope {

// J d, J being the derivative of a value at a point and d a direction over all floating inputs.
// Nothing when an operator on the way does not tell, or when stopped.
[[nodiscard]] std::optional<std::vector<Interval>> wide_push(
    const Graph& graph, std::span<const Tensor> inputs, std::span<const double> direction,
    ValueId output, const std::function<bool()>& should_stop = [] { return false; });

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Intervals that hold the logits of many samples, all rounding included [robustness-1].
#pragma once

#include <span>
#include <vector>

#include "lipscope/graph.h"
#include "pieces/layered_net.h"

namespace lipscope {

// Samples one after another, then logits. By matrix products with error bounds where the graph is
// the given chain of layers (null: it is none), by interval evaluation elsewhere.
[[nodiscard]] std::vector<Interval> logit_ranges(const Graph& graph, const LayeredNet* net,
                                                 std::span<const double> points);

}  // namespace lipscope

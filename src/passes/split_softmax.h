// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "lipscope/graph.h"

namespace lipscope {

// A graph whose Jacobian is that of the given one, for bounds on a bounded domain: a Softmax or
// LogSoftmax of one row at the end, with nothing but affine nodes behind it, becomes differences of
// its inputs, functions of single entries (`ops/rows/softmax_pairs.h`) and their sums [pieces-11].
// Values behind them are not those of the graph. Nothing for a graph that does not end so, or with
// too many classes.
[[nodiscard]] std::optional<Graph> split_softmax(const Graph& graph);

}  // namespace lipscope

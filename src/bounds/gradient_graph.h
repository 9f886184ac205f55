// SPDX-License-Identifier: Apache-2.0
// The gradient of a network as a graph of its own [local-14].
#pragma once

#include <optional>
#include <span>
#include <string>

#include "bounds/affine_nodes.h"

namespace lipscope {

// A graph with the same inputs whose outputs are, for each row of weights, the derivatives of
// weights . (first output) by all floating inputs, one after another. Where a function has a kink
// its range holds both one-sided slopes. Nothing, and the reason, when an operator does not tell.
// `nodes` are those of the graph; `rows` has the size of the output for each.
[[nodiscard]] std::optional<Graph> gradient_graph(const Graph& graph, const AffineNodes& nodes,
                                                  std::span<const double> rows,
                                                  std::string& reason);

// The same graph with one output: for each row, the sum of the sizes of its derivatives.
[[nodiscard]] Graph with_sums_of_sizes(const Graph& gradients, std::size_t rows);

}  // namespace lipscope

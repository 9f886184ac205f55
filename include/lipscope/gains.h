// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lipscope/bound.h"

namespace lipscope {

// For each node, in order, a proved constant of its first output as a function of all its inputs
// that vary, on the boxes that interval propagation gives for the domain. Infinity where none is
// known.
[[nodiscard]] std::vector<double> node_gains(const Graph& graph, const NormPair& norms,
                                             const Domain& domain = {});

}  // namespace lipscope

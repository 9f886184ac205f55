// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/problem.h"

namespace lipscope::testing_support {

inline Expected<UnitNetwork> network_with_biases(const Graph& graph) {
  return Problem({.graph = &graph}).network();
}

inline Expected<UnitNetwork> units_of(const Query& query) { return Problem(query).units(); }

inline Expected<LayeredNet> layered_net_of(const Graph& graph) {
  return Problem({.graph = &graph}).chain();
}

}  // namespace lipscope::testing_support

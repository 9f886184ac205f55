// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lipscope/graph.h"

namespace lipscope {

struct RealInputs {
  Graph graph;
  std::vector<std::string> names;  // inputs that take integers in the file
};

// The graph as a function of real numbers: integer inputs that do nothing but change their places
// until they are cast to a floating type (Cast, DequantizeLinear) become float64 inputs. Others,
// and booleans, stay as they are; nodes keep their names.
[[nodiscard]] RealInputs integers_as_reals(const Graph& graph);

// Why a graph is no function of its inputs as real numbers: integers that move it are computed with
// before they are cast, or nothing else moves it. Empty where it is one.
[[nodiscard]] std::string integer_obstacle(const Graph& graph);

}  // namespace lipscope

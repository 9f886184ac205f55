// SPDX-License-Identifier: Apache-2.0
// What of a model moves.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lipscope/evaluate.h"

namespace lipscope {

// A model at an input, reduced to what moves continuously: integer inputs are constants, and a
// model of token ids starts at the output of its first Gather.
struct MovingModel {
  Graph graph;
  std::vector<Tensor> inputs;  // one per input of the graph
  std::string from;            // the node it starts at; empty: the model's inputs
};
[[nodiscard]] MovingModel moving_model(const Graph& graph, std::span<const Tensor> inputs);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Which function of a network is asked about: a part of it, one output, a difference of two.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "lipscope/graph.h"

namespace lipscope {

struct Selection {
  std::string from, to;         // node names; empty: the inputs, the output
  std::string wrt;              // the one floating input that moves; the others may have any value
  bool logits = false;          // drop a final Softmax, LogSoftmax or Sigmoid
  std::optional<Index> output;  // one entry of the flattened output
  std::optional<std::pair<Index, Index>> margin;  // entry i minus entry j
};

struct Selected {
  // One floating output; appended rows make it a scalar for output and margin. Affine neighbours
  // are merged into one node, which has the name of the last of them.
  Graph graph;
  std::string
      from;  // the node whose output is the input of the function; empty: the model's inputs
};

// The final Softmax, LogSoftmax or Sigmoid that `logits` drops, seen through nodes that only give
// its result another shape; null where there is none.
[[nodiscard]] const Node* final_squash(const Graph& graph);

// Throws kUsage for a name or index that does not exist. A model of token ids starts at the output
// of the first Gather.
[[nodiscard]] Selected select(const Graph& graph, const Selection& selection);

}  // namespace lipscope

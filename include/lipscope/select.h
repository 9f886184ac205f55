// SPDX-License-Identifier: Apache-2.0
// Which function of a network is asked about: a part of it, one output, a difference of two.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lipscope/graph.h"

namespace lipscope {

struct Selection {
  std::string from, to;         // node names; empty: the inputs, the output
  std::string wrt;              // the one floating input that moves; the others may have any value
  bool logits = false;          // drop a final Softmax, LogSoftmax or Sigmoid
  std::optional<Index> output;  // one entry of the flattened output
  std::optional<std::pair<Index, Index>> margin;  // entry i minus entry j
};

// Where the function of real numbers that is bounded is not what a program computes with the types
// of the file.
struct Conventions {
  std::vector<std::string> integers_as_reals;  // inputs that take integers, cast at once
  std::vector<std::string> casts_as_identity;  // nodes that cast to a type with fewer values
};

struct Selected {
  // One floating output; appended rows make it a scalar for output and margin. Affine neighbours
  // are merged into one node, which has the name of the last of them.
  Graph graph;
  std::string
      from;  // the node whose output is the input of the function; empty: the model's inputs
  Conventions conventions = {};
};

// The whole model as a function of real numbers: integer inputs that are cast at once as real ones,
// unless it is a model of token ids.
struct RealFunction {
  Graph graph;
  Conventions conventions;
};
[[nodiscard]] RealFunction real_function(const Graph& graph);

// The final Softmax, LogSoftmax or Sigmoid that `logits` drops, seen through nodes that only give
// its result another shape; null where there is none.
[[nodiscard]] const Node* final_squash(const Graph& graph);
enum class SquashKind { kSoftmax, kLogSoftmax, kSigmoid };
// Nothing for any other operator.
[[nodiscard]] std::optional<SquashKind> squash_kind(const Op& op);
// Whether a squash keeps the order of all entries: not where it normalises them in several groups.
[[nodiscard]] bool keeps_order(const Op& squash);

// Throws kUsage for a name or index that does not exist, kUnsupported for integers that are
// computed with as such. A model of token ids starts at the output of the first Gather.
[[nodiscard]] Selected select(const Graph& graph, const Selection& selection);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Small random networks of every kind of layer there is a bound for.
#pragma once

#include <string>
#include <vector>

#include "tests/support/recorded_graph.h"

namespace lipscope::properties {

// A function of single entries as the operators' worked examples make it.
struct Activation {
  std::string op;
  Attributes attributes;
  std::vector<Tensor> constants;  // inputs behind the first
};

// One list per operator with a finite slope on the whole line, or with slopes that are finite on
// parts of it at best.
[[nodiscard]] const std::vector<std::vector<Activation>>& activations(bool finite);

struct RandomNetwork {
  testing_support::RecordedGraph record;
  Graph graph;
  std::vector<std::string> layers;  // names of the kinds used, activations included
};
// With affine layers and activations alone, or with layers of any kind.
[[nodiscard]] RandomNetwork random_network(std::uint64_t seed, bool only_affine_layers);

// All names that `layers` may hold, but for activations without a finite slope.
[[nodiscard]] std::vector<std::string> layer_names();

}  // namespace lipscope::properties

// SPDX-License-Identifier: Apache-2.0
// Composition of gains through a graph. Theory: docs/theory/composition.md.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "estimate/method.h"
#include "lipscope/bound.h"

namespace lipscope {

// Gives the gain of a node's output 0 with respect to input k for a norm pair, rounded upward;
// infinity when there is none; and the steps that prove it.
struct ProvedGain {
  double value = 0;
  std::vector<ProofStep> steps = {};
};
using GainSource = std::function<ProvedGain(const Node& node, Index k, const NormPair& norms)>;

struct Composition {
  double upper = 0;
  std::vector<GainClaim> gains;  // every gain that was asked for
  std::string no_bound;          // the first node with an infinite gain on a path to the output
};

// One forward pass [composition-2]: for each value a constant of the map from the inputs to it, in
// the input norm and in the output norm. Inputs that a node treats alike add up, or combine in the
// output norm where they move disjoint entries.
[[nodiscard]] Composition compose(const Graph& graph, const NormPair& norms,
                                  const GainSource& gain);
// The same with constants of some maps from one value to a later one known otherwise, in the input
// norm.
struct KnownConstant {
  ValueId from, to;
  double constant;
};
[[nodiscard]] Composition compose_with(const std::vector<KnownConstant>& known, const Graph& graph,
                                       const NormPair& norms, const GainSource& gain);

// Gains asked of the operators, over the boxes that interval propagation finds for the domain, with
// a portable margin around these.
// Borrows the graph. `memory` may be null. `quick`: see GainQuery.
[[nodiscard]] GainSource operator_gains(const Graph& graph, const Domain& domain,
                                        std::shared_ptr<GainMemory> memory = nullptr,
                                        bool quick = false);

// Why the graph is no chain, with the first node that does not continue it; empty when it is one.
[[nodiscard]] std::string why_no_chain(const Graph& graph);

// What `layer-product` and `dag` do.
void report_composition(const MethodRun& run, std::string_view method, bool quick);

}  // namespace lipscope

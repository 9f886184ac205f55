// SPDX-License-Identifier: Apache-2.0
#include "base/rounding.h"
#include "estimate/composition.h"
#include "lipscope/gains.h"

namespace lipscope {

std::vector<double> node_gains(const Graph& graph, const NormPair& norms, const Domain& domain) {
  const GainSource gain = operator_gains(graph, domain);
  std::vector<double> gains;
  for (const Node& node : graph.nodes()) {
    std::vector<double> parts;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const bool varies = !graph.value(node.inputs[k]).constant;
      if (varies) parts.push_back(gain(node, static_cast<Index>(k), norms).value);
    }
    const bool disjoint = node.op->inputs_move_disjoint_outputs();
    gains.push_back(disjoint ? pnorm_up(parts, norms.out.p()) : sum_up(parts));
  }
  return gains;
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "proof/composition.h"
#include "proof/verify.h"
#include "sdp/lmi.h"

namespace lipscope {

double proved_by(const MultiplierProof& proof, Problem& problem) {
  const Graph& graph = problem.graph();
  const ValueId output = graph.outputs()[0];
  const bool scalar = element_count(graph.value(output).type.shape) == 1;
  if (proof.chains.empty()) reject("a proof by multipliers without any");
  std::vector<KnownPart> known;
  for (const ChainProof& chain : proof.chains) {
    if (problem.norms().in != Norm(2) ||
        (chain.whole() && problem.norms().out != Norm(2) && !scalar))
      reject("multipliers prove constants from l2 to l2 only");
    const ValueId from = chain.from.empty() ? graph.inputs()[0] : value_named(graph, chain.from);
    const ValueId to = chain.to.empty() ? output : value_named(graph, chain.to);
    const auto units = needed(problem.units_between(from, to));
    if (!proves(*units, chain.multipliers, chain.rho))
      reject("the multipliers do not prove rho = {}", chain.rho);
    known.push_back({from, to, constant_up(*units, chain.rho)});
    if (chain.whole()) return known.back().constant;
  }
  return composed_up(proof.gains, known, problem);
}

}  // namespace lipscope

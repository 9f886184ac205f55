// SPDX-License-Identifier: Apache-2.0
// layer-product: upper bound from the product of per-layer gains.
//
// Needs      a chain: every node depends on the input through one of its inputs; p = q.
// Gives      upper bound, proved: every gain is rounded upward and so is their product.
// Cost       one gain per node.
// Certifies  the gains, checked by certify/checker/composition.cpp.
// Theory     docs/theory/composition.md [composition-1].
#include <fmt/format.h>

#include <algorithm>

#include "estimate/composition.h"
#include "estimate/method.h"

namespace lipscope {
namespace {

std::string unsupported(const Query& query) {
  if (query.norms.in != query.norms.out) return "input and output norm have to be the same";
  std::vector<bool> depends(query.graph->values().size());
  for (const ValueId id : query.graph->inputs()) depends[id.index] = true;
  if (query.graph->inputs().size() != 1) return "several inputs";
  ValueId last = query.graph->inputs()[0];
  for (const Node& node : query.graph->nodes()) {
    int used = 0;
    for (const ValueId id : node.inputs) used += depends[id.index] ? 1 : 0;
    const bool next = used == 1 && std::ranges::count(node.inputs, last) == 1;
    if (!next) return fmt::format("node '{}' does not continue a chain", node.name);
    for (const ValueId id : node.outputs) depends[id.index] = true;
    last = node.outputs[0];
  }
  return {};
}

void run(const MethodRun& run) {
  const Graph& graph = *run.query.graph;
  const Composition product =
      compose(graph, run.query.norms, operator_gains(graph, run.query.domain, run.context.memory));
  run.report({product.upper, Guarantee::kProved, "layer-product"}, {}, product.gains);
  if (!product.no_bound.empty()) run.no_bound(product.no_bound);
}

}  // namespace

std::vector<Method> method_layer_product() {
  return {{.info = {.id = "layer-product",
                    .side = "upper",
                    .summary = "product of per-layer gains",
                    .theory = "composition-1",
                    .guarantee = Guarantee::kProved},
           .unsupported = unsupported,
           .run = run}};
}

}  // namespace lipscope

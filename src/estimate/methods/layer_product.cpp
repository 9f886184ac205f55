// SPDX-License-Identifier: Apache-2.0
// layer-product: upper bound from the product of per-layer gains.
//
// Needs      a chain: every node depends on the input through one of its inputs; p = q.
// Gives      upper bound, proved: every gain is rounded upward and so is their product.
// Cost       one gain per node.
// Certifies  the gains, each with what proves it: proof/composition.cpp.
// Theory     docs/theory/composition.md [composition-1].
#include "estimate/composition.h"
#include "estimate/method.h"

namespace lipscope {
namespace {

std::string layer_product_unsupported(const Query& query) {
  if (query.norms.in != query.norms.out) return "input and output norm have to be the same";
  return why_no_chain(*query.graph);
}

void run_layer_product(const MethodRun& run) { report_composition(run, "layer-product", false); }
void run_layer_product_first(const MethodRun& run) {
  report_composition(run, "layer-product", true);
}

}  // namespace

std::vector<Method> method_layer_product() {
  return {{.info = {.id = "layer-product",
                    .side = "upper",
                    .summary = "product of per-layer gains",
                    .theory = "composition-1",
                    .guarantee = Guarantee::kProved},
           .unsupported = layer_product_unsupported,
           .run = run_layer_product,
           .run_first = run_layer_product_first}};
}

}  // namespace lipscope

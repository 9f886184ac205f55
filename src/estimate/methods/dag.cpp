// SPDX-License-Identifier: Apache-2.0
// dag: upper bound from one forward pass over the graph.
//
// Needs      any graph; gains of the operators on its paths (infinity where there are none).
// Gives      upper bound, proved: gains hold on boxes found by interval propagation; sums and
//            products are rounded upward.
// Cost       one gain per node input and norm.
// Certifies  the gains, each with what proves it: proof/composition.cpp.
// Theory     docs/theory/composition.md [composition-2], [composition-3].
#include "estimate/composition.h"
#include "estimate/method.h"

namespace lipscope {
namespace {

std::string dag_unsupported(const Query& query) {
  const bool same = query.norms.in == query.norms.out && why_no_chain(*query.graph).empty();
  return same ? "a chain: layer-product says the same" : "";
}

void run_dag(const MethodRun& run) { report_composition(run, "dag", false); }
void run_dag_first(const MethodRun& run) { report_composition(run, "dag", true); }

}  // namespace

std::vector<Method> method_dag() {
  return {{.info = {.id = "dag",
                    .side = "upper",
                    .summary = "gains composed over the graph, with sums and concatenations",
                    .theory = "composition-2",
                    .guarantee = Guarantee::kProved},
           .unsupported = dag_unsupported,
           .run = run_dag,
           .run_first = run_dag_first}};
}

}  // namespace lipscope

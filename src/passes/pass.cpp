// SPDX-License-Identifier: Apache-2.0
#include "passes/pass.h"

namespace lipscope {

std::vector<Pass> make_pass_table();  // generated from the list in CMakeLists.txt

std::span<const Pass> passes() {
  static const std::vector<Pass> table = make_pass_table();
  return table;
}

Graph run_passes(Graph graph) {
  for (const Pass& pass : passes()) graph = pass.run(graph);
  return graph;
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Loads a model through the installed headers and library and prints its first output.
#include <lipscope/error.h>
#include <lipscope/evaluate.h>
#include <lipscope/model.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const lipscope::OnnxModel model = lipscope::OnnxModel::read(argv[1]);
  const lipscope::Graph graph = model.graph();
  std::vector<lipscope::Tensor> inputs;
  for (const lipscope::ValueId id : graph.inputs()) {
    inputs.push_back(
        lipscope::Tensor::zeros(graph.value(id).type.type, graph.value(id).type.shape));
  }
  const std::vector<lipscope::Tensor> outputs = lipscope::evaluate(graph, inputs);
  std::printf("%zu nodes, first output entry %.6f\n", graph.nodes().size(), outputs[0].at(0));
  return outputs[0].size() == 10 ? 0 : 1;
}

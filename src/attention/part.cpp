// SPDX-License-Identifier: Apache-2.0
#include "attention/part.h"

#include <algorithm>

#include "attention/dependence.h"
#include "graph/copier.h"

namespace lipscope {
MovingModel moving_model(const Graph& graph, std::span<const Tensor> inputs) {
  const Dependence dependence(graph);
  GraphBuilder builder;
  GraphCopier copier(graph, builder);
  copier.constants();
  MovingModel model;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = graph.inputs()[i];
    if (dependence.moves(id)) {
      copier.input(id);
      model.inputs.push_back(inputs[i]);
    } else {
      const Value& fixed = graph.value(id);
      copier.set(id, builder.constant(fixed.name, inputs[i].reshaped(fixed.type.shape)));
    }
  }
  // What starts to move without an input that does is the embedding.
  for (const Node& node : graph.nodes()) {
    const ValueId out = node.outputs[0];
    if (!dependence.moves(out) ||
        std::ranges::any_of(node.inputs, [&](ValueId id) { return dependence.moves(id); }))
      continue;
    const Trace trace(graph, inputs);
    copier.input(out);
    model.inputs.push_back(trace.value(out));
    model.from = node.name;
    break;
  }
  copier.add_rest();
  model.graph = builder.finish({copier[graph.outputs()[0]]});
  return model;
}

}  // namespace lipscope

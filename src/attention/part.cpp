// SPDX-License-Identifier: Apache-2.0
#include "attention/part.h"

#include <algorithm>
#include <optional>

#include "attention/dependence.h"
#include "base/check.h"

namespace lipscope {
namespace {

class PartBuilder {
 public:
  explicit PartBuilder(const Graph& graph) : graph_(graph), map_(graph.values().size()) {
    for (std::size_t v = 0; v < graph.values().size(); ++v) {
      const Value& value = graph.values()[v];
      if (value.constant) map_[v] = builder_.constant(value);
    }
  }

  void input(ValueId id) {
    const Value& value = graph_.value(id);
    map_[id.index] = builder_.input(value.name, value.type);
  }
  void fix(ValueId id, const Tensor& value) {
    map_[id.index] = builder_.constant(graph_.value(id).name, value);
  }

  Graph finish(std::span<const ValueId> outputs) {
    for (const Node& node : graph_.nodes()) {
      if (map_[node.outputs[0].index]) continue;
      if (std::ranges::any_of(node.inputs, [&](ValueId id) { return !map_[id.index]; })) continue;
      std::vector<ValueId> inputs;
      for (const ValueId id : node.inputs) inputs.push_back(*map_[id.index]);
      std::vector<std::string> names;
      for (const ValueId id : node.outputs) names.push_back(graph_.value(id).name);
      const auto made = builder_.add(node.op, inputs, node.name, names);
      for (std::size_t i = 0; i < made.size(); ++i) map_[node.outputs[i].index] = made[i];
    }
    std::vector<ValueId> last;
    for (const ValueId id : outputs) {
      LIPSCOPE_CHECK(map_[id.index].has_value());
      last.push_back(*map_[id.index]);
    }
    return builder_.finish(std::move(last));
  }

 private:
  const Graph& graph_;
  GraphBuilder builder_;
  std::vector<std::optional<ValueId>> map_;
};

}  // namespace

Graph graph_part(const Graph& graph, std::span<const ValueId> from, std::span<const ValueId> to) {
  PartBuilder builder(graph);
  for (const ValueId id : from) builder.input(id);
  return builder.finish(to);
}

MovingModel moving_model(const Graph& graph, std::span<const Tensor> inputs) {
  const Dependence dependence(graph);
  PartBuilder builder(graph);
  MovingModel model;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = graph.inputs()[i];
    if (dependence.moves(id)) {
      builder.input(id);
      model.inputs.push_back(inputs[i]);
    } else {
      builder.fix(id, inputs[i].reshaped(graph.value(id).type.shape));
    }
  }
  // What starts to move without an input that does is the embedding.
  for (const Node& node : graph.nodes()) {
    const ValueId out = node.outputs[0];
    if (!dependence.moves(out) ||
        std::ranges::any_of(node.inputs, [&](ValueId id) { return dependence.moves(id); }))
      continue;
    const Trace trace(graph, inputs);
    builder.input(out);
    model.inputs.push_back(trace.value(out));
    model.from = node.name;
    break;
  }
  const ValueId last = graph.outputs()[0];
  model.graph = builder.finish({&last, 1});
  return model;
}

}  // namespace lipscope

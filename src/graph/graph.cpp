// SPDX-License-Identifier: Apache-2.0
#include "lipscope/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "graph/copier.h"
#include "graph/fold.h"
#include "graph/room.h"

namespace lipscope {

Index Graph::parameter_count() const {
  Index count = 0;
  for (const Value& value : values_) {
    if (value.constant && is_floating(value.type.type)) count += value.constant->size();
  }
  return count;
}

ValueId GraphBuilder::input(std::string name, ValueType type) {
  const ValueId id{static_cast<std::uint32_t>(graph_.values_.size())};
  require_room(type.shape, fmt::format("input '{}'", name));
  graph_.values_.push_back({std::move(name), std::move(type)});
  graph_.inputs_.push_back(id);
  return id;
}

ValueId GraphBuilder::constant(std::string name, Tensor exact) {
  return constant(std::move(name), std::make_shared<const Constant>(std::move(exact)));
}

ValueId GraphBuilder::constant(std::string name, std::shared_ptr<const Constant> value) {
  LIPSCOPE_CHECK(value);
  const ValueId id{static_cast<std::uint32_t>(graph_.values_.size())};
  ValueType type{value->type(), value->shape()};
  graph_.values_.push_back({std::move(name), std::move(type), std::move(value)});
  return id;
}

std::vector<ValueId> GraphBuilder::add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs,
                                       std::string name, std::vector<std::string> output_names) {
  std::vector<ValueType> types;
  std::vector<std::shared_ptr<const Constant>> constants;
  for (const ValueId id : inputs) {
    types.push_back(value(id).type);
    if (value(id).constant) constants.push_back(value(id).constant);
  }
  const std::vector<ValueType> out_types = op->infer(types);
  const bool folds = constants.size() == inputs.size();
  for (const ValueType& type : out_types)
    folds ? require_room_now(type.shape) : require_room(type.shape);
  std::vector<std::shared_ptr<const Constant>> folded(out_types.size());
  if (folds) folded = fold(op, constants, out_types);
  const bool stays = std::ranges::count(folded, nullptr) > 0;
  // A node that stays has outputs of its own; those that are known nevertheless are not used.
  std::vector<ValueId> own, outputs;
  for (std::size_t i = 0; i < out_types.size(); ++i) {
    std::string output_name =
        i < output_names.size() ? output_names[i] : fmt::format("{}:{}", name, i);
    if (folded[i]) outputs.push_back(constant(output_name, folded[i]));
    if (!stays) continue;
    own.push_back({static_cast<std::uint32_t>(graph_.values_.size())});
    graph_.values_.push_back({std::move(output_name), out_types[i]});
    if (!folded[i]) outputs.push_back(own.back());
  }
  if (stays) {
    graph_.nodes_.push_back({std::move(op), std::move(inputs), std::move(own), std::move(name)});
  }
  return outputs;
}

Graph GraphBuilder::finish(std::vector<ValueId> outputs) {
  std::vector<bool> live(graph_.values_.size());
  for (const ValueId id : outputs) live[id.index] = true;
  for (const ValueId id : graph_.inputs_) live[id.index] = true;
  std::vector<bool> keep(graph_.nodes_.size());
  for (std::size_t n = graph_.nodes_.size(); n-- > 0;) {
    const Node& node = graph_.nodes_[n];
    for (const ValueId id : node.outputs) keep[n] = keep[n] || live[id.index];
    if (!keep[n]) continue;
    for (const ValueId id : node.inputs) live[id.index] = true;
    for (const ValueId id : node.outputs) live[id.index] = true;
  }
  Graph result;
  std::vector<ValueId> map(graph_.values_.size());
  for (std::size_t v = 0; v < graph_.values_.size(); ++v) {
    if (!live[v]) continue;
    map[v] = {static_cast<std::uint32_t>(result.values_.size())};
    result.values_.push_back(std::move(graph_.values_[v]));
  }
  const auto renumber = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids) id = map[id.index];
  };
  for (std::size_t n = 0; n < graph_.nodes_.size(); ++n) {
    if (!keep[n]) continue;
    Node node = std::move(graph_.nodes_[n]);
    renumber(node.inputs);
    renumber(node.outputs);
    result.nodes_.push_back(std::move(node));
  }
  result.inputs_ = std::move(graph_.inputs_);
  result.outputs_ = std::move(outputs);
  renumber(result.inputs_);
  renumber(result.outputs_);
  graph_ = {};
  return result;
}

Graph rewrite_nodes(const Graph& graph, const NodeRewrite& rewrite) {
  GraphBuilder builder;
  GraphCopier copier(graph, builder);
  copier.inputs();
  copier.constants();
  const MappedValue mapped = [&](ValueId id) { return copier[id]; };
  for (const Node& node : graph.nodes()) {
    const std::vector<ValueId> outputs = rewrite(node, mapped, builder);
    const bool fits = std::ranges::equal(outputs, node.outputs, [&](ValueId made, ValueId old) {
      return builder.value(made).type == graph.value(old).type;
    });
    if (fits) {
      copier.set(node, outputs);
    } else {
      copier.add(node);
    }
  }
  return builder.finish(copier[graph.outputs()]);
}

}  // namespace lipscope

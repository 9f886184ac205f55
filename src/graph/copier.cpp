// SPDX-License-Identifier: Apache-2.0
#include "graph/copier.h"

#include <algorithm>

#include "base/check.h"

namespace lipscope {

void GraphCopier::constants() {
  for (std::size_t v = 0; v < copies_.size(); ++v) {
    const Value& value = graph_.values()[v];
    if (value.constant && !copies_[v]) copies_[v] = builder_.constant(value);
  }
}

void GraphCopier::input(ValueId id) {
  const Value& value = graph_.value(id);
  set(id, builder_.input(value.name, value.type));
}

void GraphCopier::inputs() {
  for (const ValueId id : graph_.inputs()) input(id);
}

void GraphCopier::set(const Node& node, std::span<const ValueId> outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) set(node.outputs[i], outputs[i]);
}

void GraphCopier::add(const Node& node) {
  set(node, builder_.add(node.op, (*this)[node.inputs], node.name, output_names(node)));
}

void GraphCopier::add_rest() {
  for (const Node& node : graph_.nodes()) {
    if (has(node.outputs[0])) continue;
    if (std::ranges::all_of(node.inputs, [&](ValueId id) { return has(id); })) add(node);
  }
}

ValueId GraphCopier::operator[](ValueId id) const {
  LIPSCOPE_CHECK(has(id));
  return *copies_[id.index];
}

std::vector<ValueId> GraphCopier::operator[](std::span<const ValueId> ids) const {
  std::vector<ValueId> found;
  for (const ValueId id : ids) found.push_back((*this)[id]);
  return found;
}

std::vector<std::string> GraphCopier::output_names(const Node& node) const {
  std::vector<std::string> names;
  for (const ValueId id : node.outputs) names.push_back(graph_.value(id).name);
  return names;
}

Graph graph_part(const Graph& graph, std::span<const ValueId> from, std::span<const ValueId> to) {
  GraphBuilder builder;
  GraphCopier copier(graph, builder);
  copier.constants();
  for (const ValueId id : from) copier.input(id);
  copier.add_rest();
  return builder.finish(copier[to]);
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "attention/entry_map.h"

#include <cmath>

namespace lipscope {

EntryMap same_entries(Index size) {
  EntryMap map;
  for (Index i = 0; i < size; ++i) map.source.push_back(i);
  map.weight.assign(map.source.size(), point(1));
  map.offset.assign(map.source.size(), point(0));
  return map;
}

std::optional<EntryMap> entry_map(const Dependence& dependence, const Node& node, std::size_t k) {
  const Graph& graph = dependence.graph();
  const auto size = element_count(graph.value(node.outputs[0]).type.shape);
  EntryMap map{std::vector<Index>(static_cast<std::size_t>(size), -1), {}, {}};
  map.weight.assign(map.source.size(), point(0));
  map.offset.assign(map.source.size(), point(0));
  std::vector<Box> boxes = dependence.loose_boxes(node);
  bool single = true;
  const auto visit = [&](Index row, Index column, double low, double high) {
    Index& source = map.source[static_cast<std::size_t>(row)];
    single = single && (source == -1) && std::isfinite(low) && std::isfinite(high);
    source = column;
    map.weight[static_cast<std::size_t>(row)] = {low, high};
  };
  if (!visit_matrix(node, {boxes, static_cast<Index>(k), 0}, visit) || !single) return std::nullopt;
  for (const ValueId id : node.inputs) {
    const bool known = id == node.inputs[k] || graph.value(id).constant;
    map.offset_known = map.offset_known && known;
  }
  if (!map.offset_known) return map;
  const Tensor zero = Tensor::zeros(ElementType::kFloat64, graph.value(node.inputs[k]).type.shape);
  boxes[k] = {zero, zero};
  const auto range = node.op->range(boxes);
  if (!range) return std::nullopt;
  const auto low = (*range)[0].lower.doubles(), high = (*range)[0].upper.doubles();
  for (std::size_t i = 0; i < low.size(); ++i) map.offset[i] = {low[i], high[i]};
  return map;
}

EntryMap composed(const EntryMap& first, const EntryMap& second) {
  EntryMap map = second;
  map.offset_known = first.offset_known && second.offset_known;
  for (std::size_t i = 0; i < map.source.size(); ++i) {
    if (map.source[i] < 0) continue;
    const auto from = static_cast<std::size_t>(map.source[i]);
    map.source[i] = first.source[from];
    map.offset[i] = second.weight[i] * first.offset[from] + second.offset[i];
    map.weight[i] = second.weight[i] * first.weight[from];
  }
  return map;
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "attention/dependence.h"

#include <algorithm>
#include <cmath>

#include "base/interval.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linear/multilinear.h"
#include "passes/token_ids.h"

namespace lipscope {
namespace {

Box any_box(const Shape& shape) {
  Box box{Tensor::zeros(ElementType::kFloat64, shape), Tensor::zeros(ElementType::kFloat64, shape)};
  std::ranges::fill(box.lower.doubles(), -kInf);
  std::ranges::fill(box.upper.doubles(), kInf);
  return box;
}

// Values that depend on one of those given, through floating values only.
void spread(const Graph& graph, std::vector<bool>& moves) {
  for (const Node& node : graph.nodes()) {
    const bool any = std::ranges::any_of(node.inputs, [&](ValueId id) { return moves[id.index]; });
    for (const ValueId id : node.outputs) {
      const bool floating = is_floating(graph.value(id).type.type);
      moves[id.index] = moves[id.index] || (any && floating);
    }
  }
}

// Values that do not move but depend on something that does.
std::vector<bool> jumping_values(const Graph& graph, const std::vector<bool>& moves) {
  std::vector<bool> jumps(moves.size());
  for (const Node& node : graph.nodes()) {
    const bool any = std::ranges::any_of(
        node.inputs, [&](ValueId id) { return moves[id.index] || jumps[id.index]; });
    for (const ValueId id : node.outputs) jumps[id.index] = any && !moves[id.index];
  }
  return jumps;
}

std::vector<bool> moving_values(const Graph& graph) {
  std::vector<bool> moves(graph.values().size());
  for (const ValueId id : graph.inputs()) moves[id.index] = is_floating(graph.value(id).type.type);
  spread(graph, moves);
  if (graph.outputs().empty() || moves[graph.outputs()[0].index]) return moves;
  moves.assign(moves.size(), false);
  if (const Node* embedding = embedding_of_ids(graph, graph.outputs()[0]))
    moves[embedding->outputs[0].index] = true;
  spread(graph, moves);
  return moves;
}

}  // namespace

bool visit_matrix(const Node& node, const MatrixQuery& query, const EntryVisitor& visit) {
  if (node.op->matrix(query, visit)) return true;
  const Elementwise* curve = node.op->elementwise();
  const auto slopes = curve != nullptr ? curve->slopes(kEntire) : std::nullopt;
  if (!slopes || !(slopes->lo == slopes->hi)) return false;
  for (Index i = 0; i < query.in[0].lower.size(); ++i) visit(i, i, slopes->lo, slopes->hi);
  return true;
}

Dependence::Dependence(const Graph& graph)
    : graph_(graph),
      moves_(moving_values(graph)),
      jumps_(jumping_values(graph, moves_)),
      maker_(graph.values().size()),
      users_(graph.values().size()) {
  for (const Node& node : graph.nodes()) {
    for (const ValueId id : node.outputs) maker_[id.index] = &node;
    for (const ValueId id : node.inputs) {
      auto& users = users_[id.index];
      if (users.empty() || users.back() != &node) users.push_back(&node);
    }
  }
}

std::optional<std::size_t> Dependence::moving_input(const Node& node) const {
  std::optional<std::size_t> found;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (!moves(node.inputs[k])) continue;
    if (found) return std::nullopt;
    found = k;
  }
  return found;
}

std::vector<Box> Dependence::loose_boxes(const Node& node) const {
  std::vector<Box> boxes;
  for (const ValueId id : node.inputs) {
    const Value& value = graph_.value(id);
    boxes.push_back(value.constant ? value.constant->box() : any_box(value.type.shape));
  }
  return boxes;
}

bool Dependence::affine(const Node& node) {
  if (const auto known = affine_.find(&node); known != affine_.end()) return known->second;
  const auto ask = [&] {
    if (std::ranges::any_of(node.inputs, [&](ValueId id) { return jumps_[id.index]; }))
      return false;
    const bool one = moving_input(node).has_value();
    if (one && node.op->multilinear() != nullptr) return true;
    for (const ValueId id : node.inputs) {
      const Value& value = graph_.value(id);
      if (!value.constant && !is_floating(value.type.type)) return false;
    }
    const std::vector<Box> boxes = loose_boxes(node);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!moves(node.inputs[k])) continue;
      // An entry that depends on another input is unbounded where that one is.
      bool fixed = true;
      const bool known = visit_matrix(node, {boxes, static_cast<Index>(k), 0},
                                      [&](Index, Index, double low, double high) {
                                        fixed = fixed && std::isfinite(low) && std::isfinite(high);
                                      });
      if (!known || !fixed) return false;
    }
    return true;
  };
  return affine_[&node] = ask();
}

bool Dependence::depends(ValueId later, ValueId earlier) const {
  std::vector<bool> reached(graph_.values().size());
  std::vector<ValueId> open{later};
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (id == earlier) return true;
    if (id < earlier || reached[id.index] || maker(id) == nullptr) continue;
    reached[id.index] = true;
    for (const ValueId input : maker(id)->inputs) open.push_back(input);
  }
  return false;
}

std::vector<ValueId> Dependence::affine_origins(ValueId id) {
  std::set<ValueId, std::greater<>> seen, open{id};
  while (!open.empty()) {
    const ValueId at = *open.begin();
    open.erase(open.begin());
    if (!seen.insert(at).second || maker(at) == nullptr || !affine(*maker(at))) continue;
    for (const ValueId input : maker(at)->inputs) {
      if (moves(input)) open.insert(input);
    }
  }
  return {seen.begin(), seen.end()};
}

bool Dependence::affine_in(ValueId id, ValueId origin) {
  std::set<ValueId, std::greater<>> open{id};
  while (!open.empty()) {
    const ValueId at = *open.begin();
    open.erase(open.begin());
    if (at == origin) continue;
    if (at < origin || maker(at) == nullptr || !affine(*maker(at))) return false;
    for (const ValueId input : maker(at)->inputs) {
      if (moves(input)) open.insert(input);
    }
  }
  return true;
}

}  // namespace lipscope

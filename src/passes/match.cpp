// SPDX-License-Identifier: Apache-2.0
#include "passes/match.h"

#include <algorithm>
#include <cmath>

#include "base/checkpoint.h"

namespace lipscope {

Matcher::Matcher(const Graph& graph) : graph_(graph), maker_(graph.values().size()) {
  for (const Node& node : graph.nodes()) {
    for (const ValueId id : node.outputs) maker_[id.index] = &node;
  }
}

const Node* Matcher::maker(ValueId id) const { return maker_[id.index]; }

const Node* Matcher::made_by(ValueId id, std::string_view op) const {
  const Node* node = maker_[id.index];
  return node != nullptr && node->op->name() == op ? node : nullptr;
}

namespace {

constexpr double kWorkPerNode = 1000, kWorkPerStep = 50;  // operations of looking for a pattern

std::optional<double> exact_scalar(const Constant* constant) {
  const Tensor* exact = constant != nullptr ? constant->exact() : nullptr;
  if (exact == nullptr || exact->size() == 0 || !is_floating(exact->type())) return std::nullopt;
  const auto entries = exact->doubles();
  charge(static_cast<double>(entries.size()));
  const bool uniform =
      std::all_of(entries.begin(), entries.end(), [&](double e) { return e == entries[0]; });
  if (!uniform || !std::isfinite(entries[0])) return std::nullopt;
  return entries[0];
}

}  // namespace

bool Matcher::keeps_type(const Node& node, std::size_t constant_side) const {
  return node.inputs.size() == 2 &&
         value(node.outputs[0]).type == value(node.inputs[1 - constant_side]).type;
}

std::optional<double> Matcher::scalar_at(const Node& node, std::size_t side) const {
  return keeps_type(node, side) ? exact_scalar(value(node.inputs[side]).constant.get())
                                : std::nullopt;
}

bool Matcher::root_at(const Node& node, std::size_t side, double square) const {
  if (!keeps_type(node, side)) return false;
  const auto& constant = value(node.inputs[side]).constant;
  const Folded* folded = constant ? constant->folded() : nullptr;
  return folded != nullptr && folded->op->name() == "Sqrt" &&
         exact_scalar(folded->inputs[0].get()) == square;
}

std::optional<std::pair<ValueId, double>> Matcher::with_scalar(const Node& node) const {
  for (const std::size_t side : {1U, 0U}) {
    if (const auto number = scalar_at(node, side)) return std::pair{node.inputs[1 - side], *number};
  }
  return std::nullopt;
}

Matcher::Product Matcher::product(ValueId id, std::optional<ValueId> stop) const {
  Product result;
  collect(id, stop, kProductDepth, result);
  return result;
}

void Matcher::collect(ValueId id, std::optional<ValueId> stop, int depth, Product& product) const {
  charge(kWorkPerStep);
  const bool apart = depth > 0 && (!stop || id != *stop);
  if (const Node* mul = apart ? made_by(id, "Mul") : nullptr) {
    if (const auto pair = with_scalar(*mul)) {
      product.multiply.push_back(pair->second);
      return collect(pair->first, stop, depth - 1, product);
    }
    for (const ValueId input : mul->inputs) collect(input, stop, depth - 1, product);
    return;
  }
  if (const Node* div = apart ? made_by(id, "Div") : nullptr) {
    if (const auto number = scalar_at(*div, 1); number && *number != 0) {
      product.divide.push_back(*number);
      return collect(div->inputs[0], stop, depth - 1, product);
    }
  }
  product.factors.push_back(id);
}

Graph replace_nodes(
    const Graph& graph,
    const std::function<std::optional<Replacement>(const Matcher&, const Node&)>& find) {
  const Matcher match(graph);
  return rewrite_nodes(graph,
                       [&](const Node& node, const MappedValue& mapped, GraphBuilder& builder) {
                         checkpoint(kWorkPerNode);
                         const auto found = find(match, node);
                         if (!found) return std::vector<ValueId>{};
                         std::vector<ValueId> inputs;
                         for (const ValueId id : found->inputs) inputs.push_back(mapped(id));
                         return builder.add(found->op, std::move(inputs), node.name,
                                            {graph.value(node.outputs[0]).name});
                       });
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "passes/integers_as_reals.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "graph/copier.h"
#include "ops/index/index_map.h"
#include "ops/integer/cast.h"
#include "ops/integer/integers.h"
#include "ops/integer/quantize.h"
#include "passes/add_node.h"

namespace lipscope {
namespace {

bool is_whole(const ValueType& type) {
  return !is_floating(type.type) && type.type != ElementType::kBool;
}

// A Cast between integer types that keeps every value.
bool only_widens(const Graph& graph, const Node& node) {
  if (node.op->name() != "Cast") return false;
  const ElementType from = graph.value(node.inputs[0]).type.type;
  const ElementType to = graph.value(node.outputs[0]).type.type;
  if (is_floating(from) || is_floating(to) || to == ElementType::kBool) return false;
  const auto least = [](ElementType t) { return integer_to_double(t, smallest_integer(t)); };
  const auto most = [](ElementType t) { return integer_to_double(t, largest_integer(t)); };
  return least(to) <= least(from) && most(from) <= most(to);
}

// Copies entries, or puts in a constant that is the same number for every type.
const IndexMapOp* as_rearrangement(const Op& op) {
  const IndexMapOp* map = op.index_map();
  if (map == nullptr) return nullptr;
  const bool plain = std::ranges::all_of(map->outputs(), [](const IndexMapOp::Output& out) {
    return !out.map.has_weights() && !is_floating(out.type.type) &&
           out.map.fill().real == static_cast<double>(out.map.fill().integer);
  });
  return plain ? map : nullptr;
}

class AsReals {
 public:
  explicit AsReals(const Graph& graph)
      : graph_(graph), users_(graph.values().size()), real_(graph.values().size()) {
    for (const Node& node : graph.nodes()) {
      for (const ValueId id : node.inputs) users_[id.index].push_back(&node);
    }
    for (const ValueId id : graph.inputs()) {
      std::vector<ValueId> reached;
      if (!is_whole(graph.value(id).type) || !is_cast_at_once(id, reached)) continue;
      for (const ValueId value : reached) real_[value.index] = true;
      names_.push_back(graph.value(id).name);
    }
  }

  RealInputs run() {
    if (names_.empty()) return {graph_, {}};
    for (const ValueId id : graph_.inputs()) {
      ValueType type = graph_.value(id).type;
      if (real_[id.index]) type.type = ElementType::kFloat64;
      copier_.set(id, builder_.input(graph_.value(id).name, std::move(type)));
    }
    copier_.constants();
    for (const Node& node : graph_.nodes()) {
      const bool real = !node.inputs.empty() && real_[node.inputs[0].index];
      if (real) {
        copier_.set(node, add_real(node, copier_[node.inputs]));
      } else {
        copier_.add(node);
      }
    }
    return {builder_.finish(copier_[graph_.outputs()]), names_};
  }

 private:
  // Whether all that comes of an integer is the same integer elsewhere, and then a floating value;
  // collects the integers on the way.
  bool is_cast_at_once(ValueId id, std::vector<ValueId>& reached) const {
    reached.push_back(id);
    if (std::ranges::find(graph_.outputs(), id) != graph_.outputs().end()) return false;
    return std::ranges::all_of(users_[id.index], [&](const Node* node) {
      if (as_cast_to_real(*node->op)) return true;
      if (dequantize_split(*node->op)) {
        return std::ranges::count(node->inputs, id) == 1 && node->inputs[0] == id &&
               std::ranges::all_of(std::span(node->inputs).subspan(1), [&](ValueId other) {
                 const auto& constant = graph_.value(other).constant;
                 return constant && constant->exact() != nullptr;
               });
      }
      if (!only_widens(graph_, *node) && as_rearrangement(*node->op) == nullptr) return false;
      return std::ranges::all_of(node->outputs,
                                 [&](ValueId out) { return is_cast_at_once(out, reached); });
    });
  }

  std::vector<ValueId> add_same(const Node& node, std::shared_ptr<const Op> op,
                                std::vector<ValueId> inputs) {
    return builder_.add(std::move(op), std::move(inputs), node.name, copier_.output_names(node));
  }

  // The node for a float64 in place of the integer at its first input.
  std::vector<ValueId> add_real(const Node& node, std::vector<ValueId> inputs) {
    if (const auto split = dequantize_split(*node.op)) return {add_levels(node, inputs, *split)};
    if (const IndexMapOp* map = as_rearrangement(*node.op)) {
      std::vector<IndexMapOp::Output> outputs(map->outputs().begin(), map->outputs().end());
      for (IndexMapOp::Output& out : outputs) out.type.type = ElementType::kFloat64;
      auto op = std::make_shared<IndexMapOp>(std::string(node.op->name()), std::move(outputs),
                                             map->padding());
      return add_same(node, std::move(op), std::move(inputs));
    }
    const auto cast = as_cast_to_real(*node.op);
    const ElementType to = cast ? cast->to : ElementType::kFloat64;
    return add_same(node, make_real_cast({ElementType::kFloat64, to}), {inputs[0]});
  }

  // (x - zero point) scale, spelled out.
  ValueId add_levels(const Node& node, const std::vector<ValueId>& inputs, const RowSplit& split) {
    const Value& out = graph_.value(node.outputs[0]);
    const ElementType type = out.type.type;
    const auto cast = make_real_cast({ElementType::kFloat64, type});
    ValueId levels = builder_.add(cast, {inputs[0]}, node.name + "/levels")[0];
    levels = reshaped(builder_, levels, {split.outer, split.length, split.inner});
    if (inputs.size() > 2) {
      const Tensor zero = graph_.value(node.inputs[2]).constant->exact()->cast(type);
      const ValueId shift =
          builder_.constant(node.name + "/zero_point", zero.reshaped({split.length, 1}));
      levels = add_node(builder_, "Sub", {levels, shift}, node.name + "/shifted");
    }
    const Tensor scale = graph_.value(node.inputs[1]).constant->exact()->cast(type);
    const ValueId steps =
        builder_.constant(node.name + "/scale", scale.reshaped({split.length, 1}));
    const ValueId scaled = add_node(builder_, "Mul", {levels, steps}, node.name + "/scaled");
    const auto rank = static_cast<Index>(out.type.shape.size());
    const ValueId shape =
        builder_.constant(node.name + "/shape", Tensor::integers({rank}, out.type.shape));
    return add_node(builder_, "Reshape", {scaled, shape}, node.name, {}, 13, {out.name});
  }

  const Graph& graph_;
  std::vector<std::vector<const Node*>> users_;
  std::vector<bool> real_;  // by value: an integer that becomes a real
  std::vector<std::string> names_;
  GraphBuilder builder_;
  GraphCopier copier_{graph_, builder_};
};

// Values that one of those given reaches; `through` says which of them go on.
template <class Through>
std::vector<bool> reached(const Graph& graph, std::vector<bool> from, Through&& through) {
  for (const Node& node : graph.nodes()) {
    const bool any = std::ranges::any_of(node.inputs, [&](ValueId id) { return from[id.index]; });
    for (const ValueId id : node.outputs) {
      if (any && through(node, id)) from[id.index] = true;
    }
  }
  return from;
}

}  // namespace

RealInputs integers_as_reals(const Graph& graph) { return AsReals(graph).run(); }

std::string integer_obstacle(const Graph& graph) {
  if (graph.outputs().empty()) return {};
  const auto everywhere = [](const Node&, ValueId) { return true; };
  const ValueId end = graph.outputs()[0];
  std::vector<bool> floating(graph.values().size());
  for (const ValueId id : graph.inputs())
    floating[id.index] = is_floating(graph.value(id).type.type);
  const bool moved = reached(graph, floating, everywhere)[end.index];
  for (const ValueId id : graph.inputs()) {
    if (floating[id.index]) continue;
    std::vector<bool> own(graph.values().size());
    own[id.index] = true;
    if (!reached(graph, own, everywhere)[end.index]) continue;
    // Real numbers made of integers that were computed with.
    const std::vector<bool> whole = reached(
        graph, own, [&](const Node&, ValueId out) { return is_whole(graph.value(out).type); });
    std::vector<bool> made(graph.values().size());
    for (const Node& node : graph.nodes()) {
      const bool converts = as_cast_to_real(*node.op) || dequantize_split(*node.op);
      const ValueId from = node.inputs.empty() ? node.outputs[0] : node.inputs[0];
      if (converts && whole[from.index] && is_whole(graph.value(from).type))
        made[node.outputs[0].index] = true;
    }
    const bool computed = reached(graph, made, everywhere)[end.index];
    if (!computed && moved) continue;
    return fmt::format(
        "input '{}' takes {} values that are not cast to real numbers at once: there is no "
        "function "
        "of real numbers to bound; --from NODE starts behind them{}",
        graph.value(id).name, to_string(graph.value(id).type.type),
        moved ? ", --wrt INPUT holds them" : "");
  }
  return {};
}

}  // namespace lipscope

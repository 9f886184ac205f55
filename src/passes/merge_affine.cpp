// SPDX-License-Identifier: Apache-2.0
#include "passes/merge_affine.h"

#include <functional>
#include <map>

#include "ops/linear/batch_normalization.h"
#include "ops/windows/padding.h"
#include "passes/affine_algebra.h"

namespace lipscope {
namespace {

class Merge {
 public:
  explicit Merge(const Graph& graph) : graph_(graph), uses_(graph.values().size()) {
    for (const Node& node : graph.nodes()) {
      for (const ValueId id : node.inputs) ++uses_[id.index];
    }
    for (const ValueId id : graph.outputs()) ++uses_[id.index];
  }

  // Copies the node, or adds the layer it makes together with what is before it.
  std::vector<ValueId> copy(const Node& node, const std::vector<ValueId>& inputs,
                            GraphBuilder& builder) {
    if (changes_nothing(node)) return {inputs[0]};
    const bool layer = may_be_affine_layer(builder, *node.op, inputs);
    const MaybeLayer merged =
        layer ? behind(builder, node, inputs) : onto_layer(builder, node, inputs);
    if (merged) {
      const ValueId made =
          add_layer(builder, *merged, node.name, graph_.value(node.outputs[0]).name);
      layers_[made.index] = [merged](GraphBuilder&) { return merged; };
      return {made};
    }
    std::vector<std::string> names;
    for (const ValueId id : node.outputs) names.push_back(graph_.value(id).name);
    const std::vector<ValueId> made = builder.add(node.op, inputs, node.name, names);
    if (layer) {
      layers_[made[0].index] = [op = node.op, inputs](GraphBuilder& b) {
        return as_affine_layer(b, *op, inputs);
      };
    }
    remember_scaling(builder, node, inputs, made[0]);
    if (only_reshapes(node) && alone(node, 0)) reshapes_[made[0].index] = inputs[0];
    if (as_padding(*node.op)) pads_[made[0].index] = {inputs[0], node.op};
    return made;
  }

 private:
  // x times, or divided by, a constant.
  struct Scaling {
    ValueId x, factor;
    std::string op;
  };

  struct Pad {
    ValueId x;
    std::shared_ptr<const Op> op;
  };

  bool alone(const Node& node, std::size_t k) const { return uses_[node.inputs[k].index] == 1; }
  const ValueType& result(const Node& node) const { return graph_.value(node.outputs[0]).type; }

  static bool only_reshapes(const Node& node) {
    const std::string_view name = node.op->name();
    return name == "Reshape" || name == "Flatten" || name == "Identity" || name == "Squeeze" ||
           name == "Unsqueeze";
  }
  bool changes_nothing(const Node& node) const {
    return only_reshapes(node) && graph_.value(node.inputs[0]).type == result(node);
  }

  // What is before a value, to be merged with what follows. Weights that took many steps to compute
  // are left as they are: histories of constants have an end (graph/fold.cpp).
  MaybeLayer layer_of(GraphBuilder& builder, ValueId id) const {
    const auto found = layers_.find(id.index);
    const MaybeLayer layer = found != layers_.end() ? found->second(builder) : std::nullopt;
    if (!layer || took_long(builder, layer->weights)) return std::nullopt;
    return layer->bias && took_long(builder, *layer->bias) ? std::nullopt : layer;
  }
  static bool took_long(const GraphBuilder& builder, ValueId id) {
    constexpr int kMostSteps = 500;
    const auto& constant = builder.value(id).constant;
    return constant && constant->folded() != nullptr && constant->folded()->steps > kMostSteps;
  }

  MaybeLayer behind(GraphBuilder& builder, const Node& node,
                    const std::vector<ValueId>& inputs) const {
    const auto scaling = scalings_.find(inputs[0].index);
    const bool scaled = scaling != scalings_.end();
    const auto pad = pads_.find(inputs[0].index);
    const bool padded = pad != pads_.end();
    const auto reshape = reshapes_.find(inputs[0].index);
    const ValueId before = reshape != reshapes_.end() ? reshape->second : inputs[0];
    if (!alone(node, 0) || (!scaled && !padded && !layers_.contains(before.index)))
      return std::nullopt;
    const MaybeLayer own = as_affine_layer(builder, *node.op, inputs);
    if (!own) return std::nullopt;
    if (padded) return layer_of_padded(builder, *own, pad->second.x, pad->second.op);
    if (scaled)
      return layer_of_scaled(builder, *own, scaling->second.x, scaling->second.op,
                             scaling->second.factor);
    const MaybeLayer first = layer_of(builder, before);
    return first ? layer_after(builder, *first, *own, before != inputs[0]) : std::nullopt;
  }

  MaybeLayer onto_layer(GraphBuilder& builder, const Node& node,
                        const std::vector<ValueId>& inputs) const {
    const std::string name(node.op->name());
    const auto epsilon = batch_normalization_epsilon(*node.op);
    const bool arithmetic = name == "Add" || name == "Sub" || name == "Mul" || name == "Div";
    if (!epsilon && !arithmetic) return std::nullopt;
    if (name == "Add" && alone(node, 0) && alone(node, 1) &&
        builder.value(inputs[0]).type == builder.value(inputs[1]).type) {
      const MaybeLayer one = layer_of(builder, inputs[0]), two = layer_of(builder, inputs[1]);
      if (one && two) return layer_plus_layer(builder, *one, *two);
    }
    for (std::size_t side = 0; side < (epsilon ? 1U : 2U); ++side) {
      if (!alone(node, side) || builder.value(inputs[side]).type != result(node)) continue;
      const MaybeLayer layer = layer_of(builder, inputs[side]);
      if (!layer) continue;
      if (epsilon)
        return layer_normalised(builder, *layer, {inputs.begin() + 1, inputs.end()}, *epsilon);
      const ValueId other = inputs[1 - side];
      if (name == "Add" && layer->x == other) return layer_plus_input(builder, *layer);
      if (builder.value(other).constant)
        return layer_with_constant(builder, *layer, name, other, side == 1);
    }
    return std::nullopt;
  }

  void remember_scaling(const GraphBuilder& builder, const Node& node,
                        const std::vector<ValueId>& inputs, ValueId made) {
    const std::string name(node.op->name());
    if (name != "Mul" && name != "Div") return;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId x = inputs[side], factor = inputs[1 - side];
      const bool fits = !builder.value(x).constant && builder.value(factor).constant &&
                        builder.value(x).type == result(node);
      if (fits && (side == 0 || name == "Mul")) scalings_[made.index] = {x, factor, name};
    }
  }

  const Graph& graph_;
  std::vector<int> uses_;  // by value of the old graph; the maps go by value of the new one
  std::map<std::uint32_t, std::function<MaybeLayer(GraphBuilder&)>> layers_;
  std::map<std::uint32_t, Scaling> scalings_;
  std::map<std::uint32_t, Pad> pads_;
  std::map<std::uint32_t, ValueId> reshapes_;  // what was reshaped, used by nothing else
};

}  // namespace

Graph merge_affine(const Graph& graph) {
  Merge merge(graph);
  return rewrite_nodes(graph,
                       [&](const Node& node, const MappedValue& mapped, GraphBuilder& builder) {
                         std::vector<ValueId> inputs;
                         for (const ValueId id : node.inputs) inputs.push_back(mapped(id));
                         return merge.copy(node, inputs, builder);
                       });
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps), with scale and bias where they follow, as one
// LayerNormalization. Exact in real arithmetic.
#include "ops/normalisation.h"
#include "passes/match.h"
#include "passes/mean_square.h"
#include "passes/pass.h"

namespace lipscope {
namespace {

struct Normalised {
  ValueId x;
  Index axis = 0;
  double epsilon = 0;
};

// x of Sub(x, ReduceMean(x)), and the first axis the mean runs over.
std::optional<Normalised> centred(const Matcher& match, ValueId id) {
  const Node* sub = match.made_by(id, "Sub");
  const Node* mean = sub != nullptr ? match.made_by(sub->inputs[1], "ReduceMean") : nullptr;
  if (mean == nullptr || mean->inputs[0] != sub->inputs[0]) return std::nullopt;
  const auto axis = trailing_mean_axis(match, *mean);
  if (!axis) return std::nullopt;
  return Normalised{sub->inputs[0], *axis, 0};
}

std::optional<Normalised> normalised(const Matcher& match, ValueId id) {
  const Node* div = match.made_by(id, "Div");
  if (div == nullptr) return std::nullopt;
  auto centre = centred(match, div->inputs[0]);
  const Node* root = match.made_by(div->inputs[1], "Sqrt");
  const Node* add = root != nullptr ? match.made_by(root->inputs[0], "Add") : nullptr;
  const auto sum = add != nullptr ? match.with_scalar(*add) : std::nullopt;
  const Node* variance = sum ? match.made_by(sum->first, "ReduceMean") : nullptr;
  if (!centre || variance == nullptr || sum->second < 0) return std::nullopt;
  const auto base = squared(match, variance->inputs[0]);
  // Exporters repeat the subtraction: compare what is centred, not the node.
  const auto again = base ? centred(match, *base) : std::nullopt;
  if (!again || again->x != centre->x || again->axis != centre->axis) return std::nullopt;
  if (trailing_mean_axis(match, *variance) != centre->axis) return std::nullopt;
  centre->epsilon = sum->second;
  return centre;
}

// A constant with one entry per normalised entry.
bool is_weight(const Matcher& match, ValueId id, const Shape& wanted) {
  return match.value(id).constant && match.value(id).type.shape == wanted;
}

struct FoundLayerNorm {
  Normalised norm;
  std::optional<ValueId> scale, bias;
};

// Constant operand of a two-input node of the given kind whose other input is `inner`'s value.
std::optional<std::pair<ValueId, ValueId>> weight_of(const Matcher& match, ValueId id,
                                                     std::string_view op) {
  const Node* node = match.made_by(id, op);
  if (node == nullptr || node->inputs.size() != 2) return std::nullopt;
  for (std::size_t side = 0; side < 2; ++side) {
    if (match.value(node->inputs[side]).constant)
      return std::pair{node->inputs[1 - side], node->inputs[side]};
  }
  return std::nullopt;
}

std::optional<FoundLayerNorm> find_layer_norm(const Matcher& match, ValueId whole) {
  FoundLayerNorm found;
  ValueId at = whole;
  if (const auto sum = weight_of(match, at, "Add")) {
    found.bias = sum->second;
    at = sum->first;
  }
  if (const auto product = weight_of(match, at, "Mul")) {
    found.scale = product->second;
    at = product->first;
  }
  if (found.bias && !found.scale) return std::nullopt;
  const auto norm = normalised(match, at);
  if (!norm) return std::nullopt;
  found.norm = *norm;
  const Shape& shape = match.value(norm->x).type.shape;
  const Shape wanted(shape.begin() + norm->axis, shape.end());
  if (found.scale && !is_weight(match, *found.scale, wanted)) return std::nullopt;
  if (found.bias && !is_weight(match, *found.bias, wanted)) return std::nullopt;
  return found;
}

Graph recognise_layer_norm(const Graph& graph) {
  const Matcher match(graph);
  return rewrite_nodes(
      graph, [&](const Node& node, const MappedValue& mapped, GraphBuilder& builder) {
        const auto found = find_layer_norm(match, node.outputs[0]);
        if (!found) return std::vector<ValueId>{};
        std::vector<ValueId> inputs{mapped(found->norm.x)};
        if (found->scale) inputs.push_back(mapped(*found->scale));
        if (found->bias) inputs.push_back(mapped(*found->bias));
        const auto op =
            make_layer_norm(match.value(found->norm.x).type, found->norm.axis, found->norm.epsilon,
                            found->scale.has_value(), found->bias.has_value());
        return builder.add(op, std::move(inputs), node.name, {graph.value(node.outputs[0]).name});
      });
}

}  // namespace

std::vector<Pass> pass_recognise_layer_norm() {
  return {{.name = "recognise-layer-norm",
           .summary = "a spelled-out LayerNorm becomes one operator",
           .run = recognise_layer_norm}};
}

}  // namespace lipscope

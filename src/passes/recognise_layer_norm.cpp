// SPDX-License-Identifier: Apache-2.0
// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps), with scale and bias where they follow, as one
// LayerNormalization. Exact in real arithmetic.
#include "ops/rows/normalisation.h"
#include "passes/match.h"
#include "passes/mean_square.h"
#include "passes/pass.h"

namespace lipscope {
namespace {

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
  const auto variance = root != nullptr ? mean_with_epsilon(match, root->inputs[0]) : std::nullopt;
  if (!centre || !variance) return std::nullopt;
  const auto base = squared(match, variance->node->inputs[0]);
  // Exporters repeat the subtraction: compare what is centred, not the node.
  const auto again = base ? centred(match, *base) : std::nullopt;
  if (!again || again->x != centre->x || again->axis != centre->axis) return std::nullopt;
  if (trailing_mean_axis(match, *variance->node) != centre->axis) return std::nullopt;
  centre->epsilon = variance->epsilon;
  return centre;
}

// A constant with one entry per normalised entry.
bool is_weight(const Matcher& match, ValueId id, const Shape& wanted) {
  return match.value(id).constant && match.value(id).type.shape == wanted;
}

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

std::optional<Replacement> find_layer_norm(const Matcher& match, const Node& node) {
  std::optional<ValueId> scale, bias;
  ValueId at = node.outputs[0];
  if (const auto sum = weight_of(match, at, "Add")) {
    bias = sum->second;
    at = sum->first;
  }
  if (const auto product = weight_of(match, at, "Mul")) {
    scale = product->second;
    at = product->first;
  }
  if (bias && !scale) return std::nullopt;
  const auto norm = normalised(match, at);
  if (!norm) return std::nullopt;
  const ValueType& type = match.value(norm->x).type;
  const Shape wanted(type.shape.begin() + norm->axis, type.shape.end());
  Replacement found{
      make_layer_norm(type, norm->axis, norm->epsilon, scale.has_value(), bias.has_value()),
      {norm->x}};
  for (const auto& weight : {scale, bias}) {
    if (!weight) continue;
    if (!is_weight(match, *weight, wanted)) return std::nullopt;
    found.inputs.push_back(*weight);
  }
  return found;
}

Graph recognise_layer_norm(const Graph& graph) { return replace_nodes(graph, find_layer_norm); }

}  // namespace

std::vector<Pass> pass_recognise_layer_norm() {
  return {{.name = "recognise-layer-norm",
           .summary = "a spelled-out LayerNorm becomes one operator",
           .run = recognise_layer_norm}};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// x / sqrt(mean(x^2) + eps), divided or multiplied by the inverse, as one RMSNormalization; a scale
// that follows stays a product. Exact in real arithmetic.
#include "ops/normalisation.h"
#include "passes/match.h"
#include "passes/mean_square.h"
#include "passes/pass.h"

namespace lipscope {
namespace {

struct MeanSquare {
  ValueId x;
  Index axis = 0;
  double epsilon = 0;
};

// x of mean(x^2) + eps.
std::optional<MeanSquare> mean_square(const Matcher& match, ValueId id) {
  const Node* add = match.made_by(id, "Add");
  const auto sum = add != nullptr ? match.with_scalar(*add) : std::nullopt;
  const Node* mean = sum ? match.made_by(sum->first, "ReduceMean") : nullptr;
  if (mean == nullptr || !match.same_shape(id, sum->first) || sum->second < 0) return std::nullopt;
  const auto x = squared(match, mean->inputs[0]);
  const auto axis = trailing_mean_axis(match, *mean);
  if (!x || !axis || !match.same_shape(*x, mean->inputs[0])) return std::nullopt;
  return MeanSquare{*x, *axis, sum->second};
}

// x of sqrt(mean(x^2) + eps), or of one over it.
std::optional<MeanSquare> root(const Matcher& match, ValueId id, bool inverse) {
  if (!inverse) {
    const Node* radical = match.made_by(id, "Sqrt");
    return radical != nullptr ? mean_square(match, radical->inputs[0]) : std::nullopt;
  }
  if (const Node* reciprocal = match.made_by(id, "Reciprocal"))
    return root(match, reciprocal->inputs[0], false);
  if (const Node* div = match.made_by(id, "Div");
      div != nullptr && match.scalar(div->inputs[0]) == 1)
    return match.same_shape(id, div->inputs[1]) ? root(match, div->inputs[1], false) : std::nullopt;
  if (const Node* pow = match.made_by(id, "Pow");
      pow != nullptr && match.scalar(pow->inputs[1]) == -0.5)
    return match.same_shape(id, pow->inputs[0]) ? mean_square(match, pow->inputs[0]) : std::nullopt;
  return std::nullopt;
}

std::optional<MeanSquare> find_rms_norm(const Matcher& match, const Node& node) {
  if (node.inputs.size() != 2) return std::nullopt;
  const bool div = node.op->name() == "Div";
  if (!div && node.op->name() != "Mul") return std::nullopt;
  for (const std::size_t side : {1u, 0u}) {
    if (div && side == 0) continue;
    const auto found = root(match, node.inputs[side], !div);
    if (found && found->x == node.inputs[1 - side]) return found;
  }
  return std::nullopt;
}

Graph recognise_rms_norm(const Graph& graph) {
  const Matcher match(graph);
  return rewrite_nodes(
      graph, [&](const Node& node, const MappedValue& mapped, GraphBuilder& builder) {
        const auto found = find_rms_norm(match, node);
        if (!found) return std::vector<ValueId>{};
        const auto op = make_rms_norm(match.value(found->x).type, found->axis, found->epsilon);
        return builder.add(op, {mapped(found->x)}, node.name, {graph.value(node.outputs[0]).name});
      });
}

}  // namespace

std::vector<Pass> pass_recognise_rms_norm() {
  return {{.name = "recognise-rms-norm",
           .summary = "a spelled-out RMSNorm becomes one operator",
           .run = recognise_rms_norm}};
}

}  // namespace lipscope

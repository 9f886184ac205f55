// SPDX-License-Identifier: Apache-2.0
// x / sqrt(mean(x^2) + eps), divided or multiplied by the inverse, as one RMSNormalization; a scale
// that follows stays a product. Exact in real arithmetic.
#include "ops/rows/normalisation.h"
#include "passes/match.h"
#include "passes/mean_square.h"
#include "passes/pass.h"

namespace lipscope {
namespace {

// x of mean(x^2) + eps.
std::optional<Normalised> mean_square(const Matcher& match, ValueId id) {
  const auto mean = mean_with_epsilon(match, id);
  if (!mean) return std::nullopt;
  const auto x = squared(match, mean->node->inputs[0]);
  const auto axis = trailing_mean_axis(match, *mean->node);
  if (!x || !axis) return std::nullopt;
  return Normalised{*x, *axis, mean->epsilon};
}

// x of sqrt(mean(x^2) + eps), or of one over it.
std::optional<Normalised> root(const Matcher& match, ValueId id, bool inverse) {
  if (!inverse) {
    const Node* radical = match.made_by(id, "Sqrt");
    return radical != nullptr ? mean_square(match, radical->inputs[0]) : std::nullopt;
  }
  if (const Node* reciprocal = match.made_by(id, "Reciprocal"))
    return root(match, reciprocal->inputs[0], false);
  if (const Node* div = match.made_by(id, "Div"); div != nullptr && match.scalar_at(*div, 0) == 1)
    return root(match, div->inputs[1], false);
  if (const Node* pow = match.made_by(id, "Pow");
      pow != nullptr && match.scalar_at(*pow, 1) == -0.5)
    return mean_square(match, pow->inputs[0]);
  return std::nullopt;
}

std::optional<Replacement> find_rms_norm(const Matcher& match, const Node& node) {
  if (node.inputs.size() != 2) return std::nullopt;
  const bool div = node.op->name() == "Div";
  if (!div && node.op->name() != "Mul") return std::nullopt;
  for (const std::size_t side : {1u, 0u}) {
    if (div && side == 0) continue;
    const auto found = root(match, node.inputs[side], !div);
    if (!found || found->x != node.inputs[1 - side]) continue;
    return Replacement{make_rms_norm(match.value(found->x).type, found->axis, found->epsilon),
                       {found->x}};
  }
  return std::nullopt;
}

Graph recognise_rms_norm(const Graph& graph) { return replace_nodes(graph, find_rms_norm); }

}  // namespace

std::vector<Pass> pass_recognise_rms_norm() {
  return {{.name = "recognise-rms-norm",
           .summary = "a spelled-out RMSNorm becomes one operator",
           .run = recognise_rms_norm}};
}

}  // namespace lipscope

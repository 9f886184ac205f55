// SPDX-License-Identifier: Apache-2.0
// x times a gate of x, spelled out in several nodes, as one activation: GELU (erf and tanh forms),
// SiLU, HardSwish. Exact in real arithmetic: the constants of the file become parameters.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/elementwise/activations.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace lipscope {
namespace {

using OpPtr = std::shared_ptr<const Op>;

struct FoundGate {
  ValueId x;
  OpPtr op;
};

// x * multiply / divide with at most one number of each kind, for Mul(x, c), Div(x, c) and x
// itself.
struct Scaled {
  ValueId x;
  double multiply = 1, divide = 1;
  bool exact_root = false;  // x / sqrt(2), the root itself
};
Scaled scaled(const Matcher& match, ValueId id) {
  if (const Node* div = match.made_by(id, "Div")) {
    if (const auto number = match.scalar_at(*div, 1); number && *number != 0)
      return {div->inputs[0], 1, *number};
    if (match.root_at(*div, 1, 2)) return {div->inputs[0], 1, std::numbers::sqrt2, true};
  }
  if (const Node* mul = match.made_by(id, "Mul")) {
    if (const auto pair = match.with_scalar(*mul)) return {pair->first, pair->second, 1};
  }
  return {id};
}

// Add(y, number) as (y, number).
std::optional<std::pair<ValueId, double>> shifted(const Matcher& match, ValueId id) {
  const Node* add = match.made_by(id, "Add");
  return add != nullptr ? match.with_scalar(*add) : std::nullopt;
}

// The rest of the product around gate and x: nothing but one number that is multiplied, exactly.
std::optional<double> outer_factor(const Matcher& match, ValueId whole, ValueId gate, ValueId x) {
  const Matcher::Product product = match.product(whole, x);
  if (product.factors.size() != 2 || product.multiply.size() > 1 || product.divide.size() > 1)
    return std::nullopt;
  const auto& factors = product.factors;
  const bool fits =
      (factors[0] == gate && factors[1] == x) || (factors[0] == x && factors[1] == gate);
  if (!fits) return std::nullopt;
  const double up = product.multiply.empty() ? 1 : product.multiply[0];
  const double down = product.divide.empty() ? 1 : product.divide[0];
  int exponent = 0;
  const bool power_of_two = std::abs(std::frexp(down, &exponent)) == 0.5;
  const double factor = up / down;
  // Its product with a power of two has nothing to round, but the quotient may underflow.
  if (!power_of_two || factor * down != up) return std::nullopt;
  return factor;
}

// scale * (y + cubic * y^3) as (y, scale, cubic), y^3 as Pow(y, 3) or y * y * y.
std::optional<std::pair<ValueId, GeluTanh>> cubic_argument(const Matcher& match, ValueId id) {
  const Node* mul = match.made_by(id, "Mul");
  const auto outer = mul != nullptr ? match.with_scalar(*mul) : std::nullopt;
  if (!outer) return std::nullopt;
  const Node* add = match.made_by(outer->first, "Add");
  if (add == nullptr) return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    const ValueId y = add->inputs[static_cast<std::size_t>(side)];
    const Matcher::Product rest = match.product(add->inputs[static_cast<std::size_t>(1 - side)], y);
    if (rest.multiply.size() != 1 || !rest.divide.empty()) continue;
    const bool cube =
        rest.factors.size() == 3 &&
        std::all_of(rest.factors.begin(), rest.factors.end(), [&](ValueId f) { return f == y; });
    const Node* pow = rest.factors.size() == 1 ? match.made_by(rest.factors[0], "Pow") : nullptr;
    const bool power = pow != nullptr && pow->inputs[0] == y && match.scalar_at(*pow, 1) == 3.0;
    if (cube || power) return std::pair{y, GeluTanh{0, outer->second, rest.multiply[0]}};
  }
  return std::nullopt;
}

std::optional<FoundGate> as_gelu(const Matcher& match, ValueId whole, ValueId gate) {
  const auto sum = shifted(match, gate);
  if (!sum || sum->second != 1) return std::nullopt;
  if (const Node* erf = match.made_by(sum->first, "Erf")) {
    const Scaled inner = scaled(match, erf->inputs[0]);
    const auto factor = outer_factor(match, whole, gate, inner.x);
    if (!factor) return std::nullopt;
    return FoundGate{inner.x,
                     make_gelu(GeluErf{*factor, inner.multiply, inner.divide, inner.exact_root})};
  }
  if (const Node* tanh = match.made_by(sum->first, "Tanh")) {
    const auto inner = cubic_argument(match, tanh->inputs[0]);
    const auto factor = inner ? outer_factor(match, whole, gate, inner->first) : std::nullopt;
    if (!factor) return std::nullopt;
    return FoundGate{inner->first,
                     make_gelu(GeluTanh{*factor, inner->second.scale, inner->second.cubic})};
  }
  return std::nullopt;
}

std::optional<FoundGate> as_silu(const Matcher& match, ValueId whole, ValueId gate) {
  const Node* sigmoid = match.made_by(gate, "Sigmoid");
  if (sigmoid == nullptr) return std::nullopt;
  for (const Scaled& inner : {Scaled{sigmoid->inputs[0]}, scaled(match, sigmoid->inputs[0])}) {
    if (inner.divide != 1 || outer_factor(match, whole, gate, inner.x) != 1.0) continue;
    return FoundGate{inner.x, make_silu(inner.multiply)};
  }
  return std::nullopt;
}

std::optional<FoundGate> as_hard_swish(const Matcher& match, ValueId whole, ValueId gate) {
  const Node* node = match.maker(gate);
  if (node == nullptr) return std::nullopt;
  if (const auto line = as_hard_sigmoid(*node->op)) {
    const ValueId x = node->inputs[0];
    if (outer_factor(match, whole, gate, x) != 1.0) return std::nullopt;
    return FoundGate{x, make_hard_swish({line->alpha, 1, line->beta})};
  }
  // x * clip(x + 3, 0, 6) / 6 = x * clamp(x / 6 + 1/2, 0, 1).
  const auto bounds = as_clip(*node->op);
  const auto sum = bounds ? shifted(match, node->inputs[0]) : std::nullopt;
  if (!sum || sum->second != 3 || bounds->lower != 0 || bounds->upper != 6) return std::nullopt;
  const Matcher::Product product = match.product(whole, sum->first);
  const bool over_six = product.divide == std::vector<double>{6} && product.multiply.empty();
  if (!over_six || product.factors.size() != 2) return std::nullopt;
  const bool fits = std::count(product.factors.begin(), product.factors.end(), sum->first) == 1 &&
                    std::count(product.factors.begin(), product.factors.end(), gate) == 1;
  if (!fits) return std::nullopt;
  return FoundGate{sum->first, make_hard_swish({1, 6, 0.5})};
}

std::optional<Replacement> find_gate(const Matcher& match, const Node& node) {
  if (node.op->name() != "Mul" && node.op->name() != "Div") return std::nullopt;
  const ValueId whole = node.outputs[0];
  for (const ValueId gate : match.product(whole).factors) {
    for (const auto as : {as_gelu, as_silu, as_hard_swish}) {
      const auto found = as(match, whole, gate);
      if (found) return Replacement{found->op, {found->x}};
    }
  }
  return std::nullopt;
}

Graph recognise_gates(const Graph& graph) { return replace_nodes(graph, find_gate); }

}  // namespace

std::vector<Pass> pass_recognise_gates() {
  return {{.name = "recognise-gates",
           .summary = "GELU, SiLU and HardSwish spelled out become one operator",
           .run = recognise_gates}};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "proof/composition.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/rounding.h"
#include "linalg/norm/operator_norm.h"
#include "proof/verify.h"

namespace lipscope {
namespace {

// Nodes that the first output depends on, in their order.
std::vector<Node> needed_nodes(const Graph& graph) {
  std::vector<bool> live(graph.values().size());
  live[graph.outputs()[0].index] = true;
  std::vector<Node> nodes;
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    if (std::ranges::none_of(node.outputs, [&](ValueId id) { return live[id.index]; })) continue;
    for (const ValueId id : node.inputs) live[id.index] = true;
    nodes.push_back(node);
  }
  std::ranges::reverse(nodes);
  return nodes;
}

class ClaimedGains {
 public:
  ClaimedGains(const std::vector<GainClaim>& gains, Problem& problem) : problem_(problem) {
    for (const GainClaim& gain : gains)
      claims_[{gain.node, gain.input, gain.norms.in.p(), gain.norms.out.p()}] = &gain;
  }

  // The claimed gain, after the operator has proved that it is large enough.
  double proved(const Node& node, Index k, const NormPair& norms) {
    const auto found = claims_.find({node.name, k, norms.in.p(), norms.out.p()});
    if (found == claims_.end())
      reject("node '{}': no gain {} for input {}", node.name, norms.name(), k);
    const GainClaim& claim = *found->second;
    if (!(claim.value >= 0)) reject("node '{}': {} is not a gain", node.name, claim.value);
    if (std::isinf(claim.value)) return claim.value;
    std::vector<Box> in;
    for (const ValueId id : node.inputs) {
      const Value& input = problem_.graph().value(id);
      if (!is_floating(input.type.type) && !input.constant)
        reject("node '{}': an integer input varies", node.name);
      in.push_back(problem_.box(id));
    }
    ProofSteps steps(claim.steps);
    const auto gain = node.op->gain({.norms = norms, .in = in, .wrt = k, .steps = &steps});
    if (!gain)
      reject("node '{}': operator {} has no gain {}", node.name, node.op->name(), norms.name());
    if (std::isinf(gain->value))
      reject("node '{}': nothing proves the gain {} {}", node.name, norms.name(), claim.value);
    if (!(gain->value <= claim.value) || !steps.finished()) {
      reject("node '{}': the gain {} is proved to be at most {}, not {}", node.name, norms.name(),
             gain->value, claim.value);
    }
    return claim.value;
  }

 private:
  using Key = std::tuple<std::string, Index, double, double>;
  Problem& problem_;
  std::map<Key, const GainClaim*> claims_;
};

}  // namespace

// Constants of the maps from the inputs to each value, in the input and in the output norm.
double composed_up(const std::vector<GainClaim>& gains, const std::vector<KnownPart>& known_parts,
                   Problem& problem) {
  const Graph& graph = problem.graph();
  const auto& [in_norm, out_norm] = problem.norms();
  ClaimedGains claimed(gains, problem);
  std::vector<double> in(graph.values().size()), out(graph.values().size());
  for (const ValueId id : graph.inputs()) {
    const ValueType& type = graph.value(id).type;
    const Index size = element_count(type.shape);
    if (!is_floating(type.type) || size == 0) continue;
    in[id.index] = 1;
    out[id.index] = norm_equivalence_up(size, in_norm, out_norm);
  }
  for (const Node& node : needed_nodes(graph)) {
    std::vector<double> in_parts, out_parts;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const double from_in = in[node.inputs[k].index], from_out = out[node.inputs[k].index];
      if (from_in == 0 && from_out == 0) continue;
      // Before a part that is known otherwise: no gain makes it finite, and none is claimed.
      if (std::isinf(from_in) && std::isinf(from_out)) {
        in_parts.push_back(kInf);
        out_parts.push_back(kInf);
        continue;
      }
      const auto input = static_cast<Index>(k);
      in_parts.push_back(gain_mul_up(claimed.proved(node, input, {in_norm, in_norm}), from_in));
      out_parts.push_back(
          in_norm == out_norm
              ? in_parts.back()
              : std::min(gain_mul_up(claimed.proved(node, input, {out_norm, out_norm}), from_out),
                         gain_mul_up(claimed.proved(node, input, {in_norm, out_norm}), from_in)));
    }
    if (in_parts.empty()) continue;
    const bool disjoint = node.op->inputs_move_disjoint_outputs();
    for (const ValueId id : node.outputs) in[id.index] = out[id.index] = kInf;
    in[node.outputs[0].index] = disjoint ? pnorm_up(in_parts, in_norm.p()) : sum_up(in_parts);
    out[node.outputs[0].index] = disjoint ? pnorm_up(out_parts, out_norm.p()) : sum_up(out_parts);
    for (const ValueId id : node.outputs) {
      for (const KnownPart& known : known_parts) {
        if (known.to != id) continue;
        in[id.index] = std::min(in[id.index], gain_mul_up(known.constant, in[known.from.index]));
        if (in_norm == out_norm) out[id.index] = in[id.index];
      }
    }
  }
  return out[graph.outputs()[0].index];
}

double proved_by(const CompositionProof& proof, Problem& problem) {
  return composed_up(proof.gains, {}, problem);
}

}  // namespace lipscope

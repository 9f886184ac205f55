// SPDX-License-Identifier: Apache-2.0
#include "estimate/composition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rounding.h"
#include "bounds/boxes.h"
#include "estimate/gain_memory.h"
#include "linalg/norm/operator_norm.h"

namespace lipscope {
namespace {

// Constants of the map from the inputs to one value: in the input norm and in the output norm.
struct Constants {
  double in = 0, out = 0;
};

class ForwardPass {
 public:
  ForwardPass(const Graph& graph, const NormPair& norms, const GainSource& gain,
              const std::vector<KnownConstant>& known)
      : graph_(graph),
        norms_(norms),
        gain_(gain),
        known_(known),
        constants_(graph.values().size()) {}

  Composition run() {
    start();
    const std::vector<bool> live = reaches_output();
    for (const Node& node : graph_.nodes()) {
      if (std::any_of(node.outputs.begin(), node.outputs.end(),
                      [&](ValueId id) { return live[id.index]; })) {
        add(node);
      }
    }
    result_.upper = constants_[graph_.outputs()[0].index].out;
    if (std::isfinite(result_.upper)) result_.no_bound.clear();
    return std::move(result_);
  }

 private:
  // An input is a block of the whole input vector: its own norm is at most that of the whole.
  void start() {
    for (const ValueId id : graph_.inputs()) {
      const ValueType& type = graph_.value(id).type;
      if (!is_floating(type.type)) continue;
      const Index size = element_count(type.shape);
      constants_[id.index] = {1, norm_equivalence_up(size, norms_.in, norms_.out)};
      if (size == 0) constants_[id.index] = {0, 0};
    }
  }

  std::vector<bool> reaches_output() const {
    std::vector<bool> live(graph_.values().size());
    live[graph_.outputs()[0].index] = true;
    const auto nodes = graph_.nodes();
    for (std::size_t n = nodes.size(); n-- > 0;) {
      const bool used = std::any_of(nodes[n].outputs.begin(), nodes[n].outputs.end(),
                                    [&](ValueId id) { return live[id.index]; });
      for (const ValueId id : nodes[n].inputs) live[id.index] = live[id.index] || used;
    }
    return live;
  }

  double ask(const Node& node, Index k, const NormPair& norms) {
    ProvedGain gain = gain_(node, k, norms);
    LIPSCOPE_CHECK(gain.value >= 0);
    result_.gains.push_back({node.name, k, norms, gain.value, std::move(gain.steps)});
    return gain.value;
  }

  void add(const Node& node) {
    std::vector<Constants> parts;
    bool infinite = false;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Constants from = constants_[node.inputs[k].index];
      if (from.in == 0 && from.out == 0) continue;  // does not depend on the input
      parts.push_back(through(node, static_cast<Index>(k), from));
      infinite = infinite || std::isinf(parts.back().out);
    }
    if (parts.empty()) return;
    if (infinite && result_.no_bound.empty()) {
      const bool overflow = std::ranges::all_of(result_.gains, [&](const GainClaim& gain) {
        return gain.node != node.name || std::isfinite(gain.value);
      });
      result_.no_bound = fmt::format(
          "node '{}': {}", node.name,
          overflow ? "the constant is above the largest double"
          : parts.size() > 1
              ? fmt::format("operator {} multiplies or divides values that move with the input "
                            "and are not bounded, as attention does; a ball or box "
                            "of inputs (--at and --radius, --box) can bound them",
                            node.op->name())
              : fmt::format("operator {} has no finite constant on its inputs", node.op->name()));
    }
    const bool disjoint = node.op->inputs_move_disjoint_outputs();
    Constants total;
    std::vector<double> in, out;
    for (const Constants& part : parts) {
      in.push_back(part.in);
      out.push_back(part.out);
    }
    total.in = disjoint ? pnorm_up(in, norms_.in.p()) : sum_up(in);
    total.out = disjoint ? pnorm_up(out, norms_.out.p()) : sum_up(out);
    // Gains are those of output 0; a further output has none of its own.
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      Constants& made = constants_[node.outputs[i].index];
      made = i == 0 ? total : Constants{kInf, kInf};
      for (const KnownConstant& known : known_) {
        if (known.to != node.outputs[i]) continue;
        made.in = std::min(made.in, gain_mul_up(known.constant, constants_[known.from.index].in));
        if (norms_.in == norms_.out) made.out = made.in;
      }
    }
  }

  Constants through(const Node& node, Index k, const Constants& from) {
    if (std::isinf(from.in) && std::isinf(from.out)) return from;
    Constants to;
    const NormPair in_in{norms_.in, norms_.in};
    to.in = gain_mul_up(ask(node, k, in_in), from.in);
    if (norms_.in == norms_.out) return {to.in, to.in};
    const NormPair out_out{norms_.out, norms_.out};
    to.out = std::min(gain_mul_up(ask(node, k, out_out), from.out),
                      gain_mul_up(ask(node, k, norms_), from.in));
    return to;
  }

  const Graph& graph_;
  NormPair norms_;
  const GainSource& gain_;
  const std::vector<KnownConstant>& known_;
  std::vector<Constants> constants_;
  Composition result_;
};

}  // namespace

Composition compose(const Graph& graph, const NormPair& norms, const GainSource& gain) {
  return compose_with({}, graph, norms, gain);
}

Composition compose_with(const std::vector<KnownConstant>& known, const Graph& graph,
                         const NormPair& norms, const GainSource& gain) {
  return ForwardPass(graph, norms, gain, known).run();
}

GainSource operator_gains(const Graph& graph, const Domain& domain,
                          std::shared_ptr<GainMemory> memory, bool quick) {
  auto boxes =
      std::make_shared<ValueBoxes>(graph, input_boxes(graph, domain), BoxMargin::kPortable);
  if (!memory) memory = make_gain_memory();
  const auto gains = std::make_shared<RememberedGains>(
      graph, [boxes](ValueId id) { return boxes->at(id); }, std::move(memory));
  return [gains, quick](const Node& node, Index k, const NormPair& norms) {
    return gains->gain(node, k, norms, quick);
  };
}

std::string why_no_chain(const Graph& graph) {
  if (graph.inputs().size() != 1) return "several inputs";
  std::vector<bool> depends(graph.values().size());
  ValueId last = graph.inputs()[0];
  depends[last.index] = true;
  for (const Node& node : graph.nodes()) {
    const auto used =
        std::ranges::count_if(node.inputs, [&](ValueId id) { return depends[id.index]; });
    if (used != 1 || std::ranges::count(node.inputs, last) != 1)
      return fmt::format("node '{}' does not continue a chain", node.name);
    for (const ValueId id : node.outputs) depends[id.index] = true;
    last = node.outputs[0];
  }
  return {};
}

void report_composition(const MethodRun& run, std::string_view method, bool quick) {
  const Graph& graph = *run.query.graph;
  const Composition composed = compose(
      graph, run.query.norms, operator_gains(graph, run.query.domain, run.context.memory, quick));
  run.report({composed.upper, Guarantee::kProved, std::string(method)},
             {.proof = CompositionProof{composed.gains}});
  if (!composed.no_bound.empty()) run.no_bound(composed.no_bound);
}

}  // namespace lipscope

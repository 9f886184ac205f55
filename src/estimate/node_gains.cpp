// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "base/checkpoint.h"
#include "base/rounding.h"
#include "bounds/boxes.h"
#include "estimate/gain_memory.h"
#include "lipscope/gains.h"

namespace lipscope {
namespace {

bool is_same(const NormPair& norms, double p) { return norms.in.p() == p && norms.out.p() == p; }

// Entries of the matrix of a node that multiplies by constants, at most; 0 for the others.
double matrix_entries(const Graph& graph, const Node& node) {
  double weights = 0;
  for (const ValueId id : node.inputs) {
    const Value& value = graph.value(id);
    if (value.constant && is_floating(value.type.type) && value.type.shape.size() > 1)
      weights = std::max(weights, static_cast<double>(value.constant->size()));
  }
  return weights * static_cast<double>(element_count(graph.value(node.outputs[0]).type.shape));
}

}  // namespace

class NodeGains::Search {
 public:
  Search(const Graph& graph, std::vector<NormPair> norms, const Domain& domain)
      : graph_(graph),
        norms_(std::move(norms)),
        gains_(
            std::make_shared<ValueBoxes>(graph, input_boxes(graph, domain), BoxMargin::kPortable),
            make_gain_memory()),
        table_(graph.nodes().size(), std::vector<NodeGain>(norms_.size())) {}

  // Cheap gains of all nodes, then better ones in two rounds. Throws Stopped.
  void run(const std::function<bool()>& is_over, const std::function<void(std::size_t)>& settled) {
    const std::size_t count = graph_.nodes().size();
    for (std::size_t n = 0; n < count && !is_over(); ++n) sketch(n);
    for (std::size_t n = 0; n < count && !is_over(); ++n) refine(n, true);
    for (std::size_t n = 0; n < count && !is_over(); ++n) {
      refine(n, false);
      settled(n);
    }
  }

  [[nodiscard]] bool complete() const {
    return std::ranges::all_of(table_, [](const auto& row) {
      return std::ranges::all_of(
          row, [](const NodeGain& gain) { return gain.state == NodeGain::State::kFound; });
    });
  }
  [[nodiscard]] const std::vector<NormPair>& norms() const { return norms_; }
  [[nodiscard]] std::size_t size() const { return table_.size(); }
  [[nodiscard]] const std::vector<NodeGain>& row(std::size_t n) const { return table_[n]; }

 private:
  // Gains by the largest sum of a row or a column take about as long as reading the weights. In l2
  // a gain is at most the mean of those [composition-10].
  void sketch(std::size_t n) {
    constexpr double kLight = 1e6;
    const bool light = matrix_entries(graph_, graph_.nodes()[n]) <= kLight;
    for (std::size_t j = 0; j < norms_.size(); ++j) {
      if (table_[n][j].state != NodeGain::State::kOpen) continue;
      const bool sums = is_same(norms_[j], 1) || is_same(norms_[j], kInf);
      if (light || sums) {
        keep(n, j, gain_of(n, norms_[j], false), NodeGain::State::kFound);
      } else if (is_same(norms_[j], 2)) {
        keep(n, j, mean_gain(n), NodeGain::State::kLoose);
      }
    }
  }

  void refine(std::size_t n, bool quick) {
    for (std::size_t j = 0; j < norms_.size(); ++j) {
      if (table_[n][j].state == NodeGain::State::kFound) continue;
      keep(n, j, gain_of(n, norms_[j], quick),
           quick ? NodeGain::State::kLoose : NodeGain::State::kFound);
    }
  }

  void keep(std::size_t n, std::size_t j, double value, NodeGain::State state) {
    NodeGain& gain = table_[n][j];
    gain = {state, gain.state == NodeGain::State::kOpen ? value : std::min(gain.value, value)};
  }

  double gain_of(std::size_t n, const NormPair& norms, bool quick) {
    return combined(n, norms, [&](const Node& node, Index k) {
      return gains_.gain(node, k, norms, quick).value;
    });
  }
  double mean_gain(std::size_t n) {
    const Norm one(1), two(2), most = Norm::infinity();
    return combined(n, {two, two}, [&](const Node& node, Index k) {
      return sqrt_up(gain_mul_up(gains_.gain(node, k, {one, one}, false).value,
                                 gains_.gain(node, k, {most, most}, false).value));
    });
  }
  template <class GainOfInput>
  double combined(std::size_t n, const NormPair& norms, GainOfInput&& gain) {
    const Node& node = graph_.nodes()[n];
    std::vector<double> parts;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const bool varies = !graph_.value(node.inputs[k]).constant;
      if (varies) parts.push_back(gain(node, static_cast<Index>(k)));
    }
    const bool disjoint = node.op->inputs_move_disjoint_outputs();
    return disjoint ? pnorm_up(parts, norms.out.p()) : sum_up(parts);
  }

  const Graph& graph_;
  std::vector<NormPair> norms_;
  RememberedGains gains_;
  std::vector<std::vector<NodeGain>> table_;  // by node, then by norm
};

NodeGains::NodeGains(const Graph& graph, std::vector<NormPair> norms, const Domain& domain)
    : search_(std::make_unique<Search>(graph, std::move(norms), domain)) {}
NodeGains::~NodeGains() = default;
NodeGains::NodeGains(NodeGains&&) noexcept = default;
NodeGains& NodeGains::operator=(NodeGains&&) noexcept = default;

bool NodeGains::find(const RunClock& clock, double deadline,
                     const std::function<void(std::size_t)>& settled) {
  std::size_t told = 0;
  const auto tell = [&](std::size_t n) {
    if (settled) settled(n);
    told = n + 1;
  };
  try {
    const RunScope scope(clock, deadline);
    search_->run([&] { return clock.passed(deadline); }, tell);
  } catch (const Stopped&) {
  }
  for (std::size_t n = told; n < search_->size(); ++n) tell(n);
  return search_->complete();
}

const std::vector<NormPair>& NodeGains::norms() const { return search_->norms(); }
const NodeGain& NodeGains::at(std::size_t node, std::size_t norm) const {
  return search_->row(node)[norm];
}

}  // namespace lipscope

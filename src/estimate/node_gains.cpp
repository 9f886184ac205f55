// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>
#include <optional>

#include "base/checkpoint.h"
#include "base/memory_budget.h"
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
        anywhere_(graph, any_numbers(graph), nullptr),
        there_(graph, boxes_of(graph, domain), nullptr),
        table_(graph.nodes().size(), std::vector<NodeGain>(norms_.size())) {}

  // Cheap gains of all nodes that hold wherever their inputs are.
  void glance(const std::function<bool()>& is_over) {
    const std::size_t count = graph_.nodes().size();
    for (std::size_t n = 0; n < count && !is_over(); ++n) sketch(n, anywhere_);
  }
  // Cheap ones on the boxes, then better ones in two rounds. Throws Stopped.
  void run(const std::function<bool()>& is_over, const std::function<void(std::size_t)>& settled) {
    const std::size_t count = graph_.nodes().size();
    for (std::size_t n = 0; n < count && !is_over(); ++n) sketch(n, there_);
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
  // Neighbours often have the same shape.
  static BoxSource any_numbers(const Graph& graph) {
    return [&graph, last = Box()](ValueId id) mutable {
      const Value& value = graph.value(id);
      if (value.constant) return value.constant->box();
      if (last.lower.shape() != value.type.shape) last = whole_line(value.type.shape);
      return last;
    };
  }
  static BoxSource boxes_of(const Graph& graph, const Domain& domain) {
    return [boxes = std::make_shared<ValueBoxes>(graph, input_boxes(graph, domain),
                                                 BoxMargin::kPortable)](ValueId id) {
      return boxes->at(id);
    };
  }

  // Gains by the largest sum of a row or a column take about as long as reading the weights. In l2
  // a gain is at most the mean of those [composition-10].
  void sketch(std::size_t n, RememberedGains& gains) {
    constexpr double kLight = 1e6;
    const bool light = matrix_entries(graph_, graph_.nodes()[n]) <= kLight;
    const auto state = &gains == &there_ ? NodeGain::State::kFound : NodeGain::State::kLoose;
    for (std::size_t j = 0; j < norms_.size(); ++j) {
      const NodeGain::State known = table_[n][j].state;
      if (known == NodeGain::State::kFound || known == state) continue;
      const bool sums = is_same(norms_[j], 1) || is_same(norms_[j], kInf);
      if (light || sums) {
        keep(n, j, gain_of(n, gains, norms_[j], false), state);
      } else if (is_same(norms_[j], 2)) {
        keep(n, j, mean_gain(n, gains), NodeGain::State::kLoose);
      }
    }
  }

  void refine(std::size_t n, bool quick) {
    for (std::size_t j = 0; j < norms_.size(); ++j) {
      if (table_[n][j].state == NodeGain::State::kFound) continue;
      keep(n, j, gain_of(n, there_, norms_[j], quick),
           quick ? NodeGain::State::kLoose : NodeGain::State::kFound);
    }
  }

  void keep(std::size_t n, std::size_t j, double value, NodeGain::State state) {
    NodeGain& gain = table_[n][j];
    gain = {state, gain.state == NodeGain::State::kOpen ? value : std::min(gain.value, value)};
  }

  double gain_of(std::size_t n, RememberedGains& gains, const NormPair& norms, bool quick) const {
    return combined(n, norms, [&](const Node& node, Index k) {
      return gains.gain(node, k, norms, quick).value;
    });
  }
  double mean_gain(std::size_t n, RememberedGains& gains) const {
    const Norm one(1), two(2), most = Norm::infinity();
    return combined(n, {two, two}, [&](const Node& node, Index k) {
      return sqrt_up(gain_mul_up(gains.gain(node, k, {one, one}, false).value,
                                 gains.gain(node, k, {most, most}, false).value));
    });
  }
  template <class GainOfInput>
  double combined(std::size_t n, const NormPair& norms, GainOfInput&& gain) const {
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
  RememberedGains anywhere_, there_;
  std::vector<std::vector<NodeGain>> table_;  // by node, then by norm
};

NodeGains::NodeGains(const Graph& graph, std::vector<NormPair> norms, const Domain& domain)
    : search_(std::make_unique<Search>(graph, std::move(norms), domain)) {}
NodeGains::~NodeGains() = default;
NodeGains::NodeGains(NodeGains&&) noexcept = default;
NodeGains& NodeGains::operator=(NodeGains&&) noexcept = default;

void NodeGains::glance(const RunClock& clock, double deadline) {
  try {
    const RunScope scope(clock, deadline);
    search_->glance([&] { return clock.passed(deadline); });
  } catch (const Stopped&) {
    relieve_memory();
  } catch (const std::bad_alloc&) {
    relieve_memory();
  }
}

bool NodeGains::find(const RunClock& clock, double deadline,
                     const std::function<void(std::size_t)>& settled) {
  glance(clock, deadline);
  std::size_t told = 0;
  const auto tell = [&](std::size_t n) {
    if (settled) settled(n);
    told = n + 1;
  };
  try {
    const RunScope scope(clock, deadline);
    search_->run([&] { return clock.passed(deadline); }, tell);
  } catch (const Stopped&) {
    relieve_memory();
  } catch (const std::bad_alloc&) {
    relieve_memory();
  }
  for (std::size_t n = told; n < search_->size(); ++n) tell(n);
  return search_->complete();
}

const std::vector<NormPair>& NodeGains::norms() const { return search_->norms(); }
const NodeGain& NodeGains::at(std::size_t node, std::size_t norm) const {
  return search_->row(node)[norm];
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "estimate/segments.h"

#include <algorithm>

#include "sdp/lmi.h"

namespace lipscope {
namespace {

// For each value the nodes that use it on a way to the output, and the output once more.
std::vector<int> uses_of(const Graph& graph) {
  std::vector<int> uses(graph.values().size());
  uses[graph.outputs()[0].index] = 1;
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    if (std::ranges::none_of(node.outputs, [&](ValueId id) { return uses[id.index] > 0; }))
      continue;
    for (const ValueId id : node.inputs) ++uses[id.index];
  }
  return uses;
}

class Segmenter {
 public:
  Segmenter(Problem& problem, const SegmentLimits& limits)
      : problem_(problem),
        graph_(problem.graph()),
        limits_(limits),
        cuts_(cut_values(problem.graph())) {
    for (const ValueId id : cuts_) {
      const auto makes = [&](const Node& node) {
        return std::ranges::find(node.outputs, id) != node.outputs.end();
      };
      const auto maker = std::ranges::find_if(graph_.nodes(), makes);
      behind_.push_back(static_cast<std::size_t>(maker - graph_.nodes().begin()) + 1);
      if (maker == graph_.nodes().end()) behind_.back() = 0;  // an input
    }
  }

  std::vector<SdpSegment> run(std::string& reason) {
    std::vector<SdpSegment> segments;
    std::size_t at = 0;
    while (at + 1 < cuts_.size() && !limits_.stop()) {
      std::size_t end = longest_from(at);
      if (at == 0) reason = reason_;
      if (network_) {
        segments.push_back({cuts_[at], cuts_[end], std::move(network_)});
      }
      at = std::max(end, at + 1);
    }
    return segments;
  }

 private:
  enum class Size { kFits, kAffine, kTooMuch };

  Size read(std::size_t from, std::size_t to) {
    if (limits_.stop()) return Size::kTooMuch;
    network_ = nullptr;
    const auto read = problem_.units_between(cuts_[from], cuts_[to]);
    reason_ = read.reason();
    if (!read) return reason_ == kOneAffineLayer ? Size::kAffine : Size::kTooMuch;
    network_ = *read;
    const BlockCost cost = proof_cost(*network_);
    if (cost.doubles <= limits_.doubles && cost.operations <= limits_.operations)
      return Size::kFits;
    reason_ = "layers too large to factor in the time and memory there is";
    network_.reset();
    return Size::kTooMuch;
  }

  // Whether a node with one input that matters has no place in any part: a matter of seconds for
  // the largest maps, so each is asked once.
  bool hopeless(std::size_t n) {
    if (hopeless_.empty()) hopeless_.resize(graph_.nodes().size());
    if (hopeless_[n]) return *hopeless_[n];
    if (limits_.stop()) return true;
    const Node& node = graph_.nodes()[n];
    const auto variable = [&](ValueId id) { return !graph_.value(id).constant; };
    const bool asked = std::ranges::count_if(node.inputs, variable) == 1;
    hopeless_[n] = asked && !fits(*std::ranges::find_if(node.inputs, variable), node.outputs[0]);
    return *hopeless_[n];
  }

  bool fits(ValueId from, ValueId to) {
    const auto read = problem_.units_between(from, to);
    return read || read.reason() == kOneAffineLayer;
  }

  // The last cut before the first node behind `from` that is hopeless.
  std::size_t last_hope(std::size_t from) {
    for (std::size_t to = from + 1; to < cuts_.size(); ++to) {
      for (std::size_t n = behind_[to - 1]; n < behind_[to]; ++n) {
        if (hopeless(n)) return to - 1;
      }
    }
    return cuts_.size() - 1;
  }

  // Leaves the network and the reason why it is not the whole.
  std::size_t longest_from(std::size_t from) {
    std::size_t good = from, bad = from == 0 ? cuts_.size() - 1 : last_hope(from);
    if (bad == from || read(from, bad) != Size::kTooMuch) return bad;
    const std::string why = reason_;
    if (const std::size_t last = last_hope(from); last < bad) {
      bad = last;
      if (bad == from || read(from, bad) != Size::kTooMuch) {
        reason_ = why;
        return bad;
      }
    }
    std::shared_ptr<const UnitNetwork> best;
    while (bad - good > 1) {
      const std::size_t middle = good + (bad - good) / 2;
      const Size size = read(from, middle);
      (size == Size::kTooMuch ? bad : good) = middle;
      if (size == Size::kFits) best = std::move(network_);
    }
    network_ = std::move(best);
    reason_ = why;
    return good;
  }

  Problem& problem_;
  const Graph& graph_;
  const SegmentLimits& limits_;
  std::vector<ValueId> cuts_;
  std::vector<std::size_t> behind_;            // by cut: the first node that is not before it
  std::vector<std::optional<bool>> hopeless_;  // by node
  std::shared_ptr<const UnitNetwork> network_;
  std::string reason_;
};

}  // namespace

std::vector<ValueId> cut_values(const Graph& graph) {
  std::vector<int> uses = uses_of(graph);
  std::vector<bool> moves(uses.size());
  std::vector<ValueId> open, cuts;  // open: values that move and are still to be used
  for (const ValueId id : graph.inputs()) {
    moves[id.index] = true;
    if (uses[id.index] > 0) open.push_back(id);
  }
  if (open.size() == 1) cuts.push_back(open[0]);
  for (const Node& node : graph.nodes()) {
    if (std::ranges::none_of(node.outputs, [&](ValueId id) { return uses[id.index] > 0; }))
      continue;
    bool moved = false;
    for (const ValueId id : node.inputs) {
      --uses[id.index];
      moved = moved || moves[id.index];
    }
    if (!moved) continue;
    for (const ValueId id : node.outputs) {
      moves[id.index] = true;
      if (uses[id.index] > 0) open.push_back(id);
    }
    std::erase_if(open, [&](ValueId id) { return uses[id.index] == 0; });
    if (open.size() == 1) cuts.push_back(open[0]);
  }
  return cuts;
}

std::vector<SdpSegment> sdp_segments(Problem& problem, const SegmentLimits& limits,
                                     std::string& reason) {
  return Segmenter(problem, limits).run(reason);
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "robust/ball_ranges.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"

namespace lipscope {

BallRanges::BallRanges(const Graph& graph, const Norm& norm)
    : graph_(graph), useful_(!(norm == Norm::infinity())), gains_(graph.nodes().size()) {
  if (!useful_) return;
  std::vector<bool> moves(graph.values().size());
  for (const ValueId id : graph.inputs()) moves[id.index] = is_floating(graph.value(id).type.type);
  Domain everywhere;
  ValueBoxes boxes(graph, input_boxes(graph, everywhere));
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    std::vector<Box> in;
    bool known = true;
    for (const ValueId id : node.inputs) {
      in.push_back(boxes.at(id));
      known = known && (is_floating(graph.value(id).type.type) || graph.value(id).constant);
    }
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!moves[node.inputs[k].index]) continue;
      for (const ValueId id : node.outputs) moves[id.index] = true;
      const auto gain = [&](const Norm& to) {
        const auto found =
            known ? node.op->gain({{norm, to}, in, static_cast<Index>(k), true}) : std::nullopt;
        return found ? found->value : kInf;
      };
      gains_[n].push_back({k, gain(norm), gain(Norm::infinity())});
    }
  }
}

void BallRanges::narrow(ValueBoxes& ball, ValueBoxes& center, double radius) const {
  std::vector<double> reach(graph_.values().size());  // how far a value moves, in the norm
  for (const ValueId id : graph_.inputs()) reach[id.index] = radius;
  for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
    const Node& node = graph_.nodes()[n];
    const ValueId out = node.outputs[0];
    if (!useful_ || node.outputs.size() != 1 || !is_floating(graph_.value(out).type.type)) {
      for (const ValueId id : node.outputs) reach[id.index] = kInf;
      continue;
    }
    double whole = 0, entry = 0;
    for (const Gains& gains : gains_[n]) {
      const double from = reach[node.inputs[gains.input].index];
      whole = from == 0 ? whole : add_up(whole, mul_up(gains.whole, from));
      entry = from == 0 ? entry : add_up(entry, mul_up(gains.entry, from));
    }
    reach[out.index] = std::isnan(whole) ? kInf : whole;
    if (!(entry < kInf) || gains_[n].empty()) continue;
    const Box& middle = center.at(out);
    const Box& box = ball.at(out);
    std::vector<Interval> less;
    for (std::size_t i = 0; i < middle.lower.doubles().size(); ++i) {
      less.push_back({std::max(box.lower.doubles()[i], sub_down(middle.lower.doubles()[i], entry)),
                      std::min(box.upper.doubles()[i], add_up(middle.upper.doubles()[i], entry))});
    }
    ball.shrink(out, less);
  }
}

}  // namespace lipscope

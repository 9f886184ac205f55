// SPDX-License-Identifier: Apache-2.0
// Linear bounds raised by the choice of lines [local-15].
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rounding.h"
#include "bounds/linear_forms.h"

namespace lipscope {

// The values that the chosen affine functions have where the bounds are taken.
LinearBounds::Table LinearBounds::forward(const Rows& rows, const Table& kept, const Table& mix,
                                          std::size_t upto) const {
  const std::size_t n = rows.count;
  Table values(graph_.values().size());
  std::vector<double> a(support_.inputs());
  for (const ValueId id : graph_.inputs()) {
    const auto size = static_cast<std::size_t>(element_count(graph_.value(id).type.shape));
    if (is_floating(graph_.value(id).type.type)) values[id.index].resize(size * n);
  }
  for (std::size_t r = 0; r < n; ++r) {
    gather(rows, r, a);
    const std::vector<double> x = support_.lowest_point(a);
    std::size_t at = 0;
    for (const ValueId id : graph_.inputs()) {
      std::vector<double>& to = values[id.index];
      for (std::size_t e = r; e < to.size(); e += n) to[e] = x[at++];
    }
  }
  for (std::size_t m = 0; m < upto; ++m) {
    const Node& node = graph_.nodes()[m];
    if (!nodes_.moves(node.outputs[0])) continue;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const Forms::Output& out = forms_[m]->outputs[o];
      std::vector<double>& to = values[node.outputs[o].index];
      to.assign(out.low.size() * n, 0);
      if (nodes_.at(m) == nullptr && (o > 0 || kept[m].empty())) continue;  // not on the way
      for (std::size_t i = 0; i < out.low.size(); ++i) {
        for (std::size_t r = 0; r < n; ++r) {
          const bool above = nodes_.at(m) == nullptr && kept[m][i * n + r] < 0;
          double value = above ? out.high[i] : out.low[i];
          for (const Forms::Part& part : out.parts) {
            const SparseRows& m_rows = above ? *part.above : *part.below;
            const std::vector<double>& from = values[node.inputs[part.input].index];
            for (auto k = static_cast<std::size_t>(m_rows.begin[i]);
                 k < static_cast<std::size_t>(m_rows.begin[i + 1]); ++k)
              value += m_rows.weights[k] * from[m_rows.columns[k] * n + r];
          }
          if (out.other && !mix[m].empty()) {
            const Forms::OtherLines& other = *out.other;
            const double x = values[node.inputs[0].index][i * n + r], t = mix[m][i * n + r];
            const double there =
                above ? other.above[i] * x + other.high[i] : other.below[i] * x + other.low[i];
            value += t * (there - value);
          }
          to[i * n + r] = std::isfinite(value) ? value : 0;
        }
      }
    }
  }
  return values;
}

std::vector<double> LinearBounds::raised(ValueId value, std::span<const double> given,
                                         std::span<const double> enough, int steps) {
  constexpr double kKeep = 0.8, kKeepSquare = 0.95, kWay = 0.4, kShrink = 0.9;
  std::vector<double> best = lower(value, given);
  const auto size = static_cast<std::size_t>(element_count(graph_.value(value).type.shape));
  const std::size_t n = best.size(), from = maker_[value.index];
  LIPSCOPE_CHECK(enough.size() == n);
  if (!nodes_.moves(value)) return best;
  Table mix(graph_.nodes().size()), first(mix.size()), second(mix.size());
  for (std::size_t m = 0; m < from; ++m) {
    if (!forms_[m] || forms_[m]->outputs.empty() || !forms_[m]->outputs[0].other) continue;
    mix[m].resize(forms_[m]->outputs[0].low.size() * n);
    first[m] = second[m] = mix[m];
  }
  for (int step = 0; step < steps; ++step) {
    bool done = true;
    for (std::size_t r = 0; r < n; ++r) done = done && best[r] > enough[r];
    if (done || stop_()) return best;
    Table kept(mix.size());
    Rows rows(n, graph_.values().size());
    rows.mix = &mix;
    rows.kept = &kept;
    std::vector<double>& w = rows.weights[value.index];
    w.resize(size * n);
    for (std::size_t r = 0; r < n; ++r) {
      for (std::size_t e = 0; e < size; ++e) w[e * n + r] = given[r * size + e];
    }
    run(rows, from);
    const std::vector<double> found = finish(rows);
    for (std::size_t r = 0; r < n; ++r) best[r] = std::max(best[r], found[r]);
    const Table values = forward(rows, kept, mix, from);
    const double way = kWay * std::pow(kShrink, step);
    const double whole_first = 1 - std::pow(kKeep, step + 1);
    const double whole_second = 1 - std::pow(kKeepSquare, step + 1);
    for (std::size_t m = 0; m < from; ++m) {
      if (mix[m].empty() || kept[m].empty()) continue;
      const Forms::Output& out = forms_[m]->outputs[0];
      const Forms::OtherLines& other = *out.other;
      const std::vector<double>& x = values[graph_.nodes()[m].inputs[0].index];
      for (std::size_t e = 0; e < mix[m].size(); ++e) {
        const std::size_t i = e / n;
        const double a = kept[m][e];
        if (a == 0) continue;
        const SparseRows& own = a > 0 ? *out.parts[0].below : *out.parts[0].above;
        const auto k = static_cast<std::size_t>(own.begin[i]);
        const double slope = own.begin[i] < own.begin[i + 1] ? own.weights[k] : 0;
        const double gradient =
            a > 0 ? a * ((other.below[i] - slope) * x[e] + other.low[i] - out.low[i])
                  : a * ((other.above[i] - slope) * x[e] + other.high[i] - out.high[i]);
        if (!std::isfinite(gradient)) continue;
        first[m][e] = kKeep * first[m][e] + (1 - kKeep) * gradient;
        second[m][e] = kKeepSquare * second[m][e] + (1 - kKeepSquare) * gradient * gradient;
        if (second[m][e] == 0) continue;
        const double move =
            way * (first[m][e] / whole_first) / std::sqrt(second[m][e] / whole_second);
        mix[m][e] = std::clamp(mix[m][e] + move, 0.0, 1.0);
      }
    }
  }
  return best;
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "bounds/linear_ascent.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rounding.h"

namespace lipscope {

// Steps of averaged gradients over the root of their averaged squares (Adam).
struct LinearAscent::Pace {
  static constexpr double kKeep = 0.8, kKeepSquare = 0.95;
  double way, whole_first, whole_second;

  // Steps shrink by a tenth each, or less where there are so many that they would end in place.
  Pace(int step, int steps, double first_way)
      : way(first_way * std::pow(std::max(0.9, std::pow(1e-5, 1.0 / steps)), step)),
        whole_first(1 - std::pow(kKeep, step + 1)),
        whole_second(1 - std::pow(kKeepSquare, step + 1)) {}
  [[nodiscard]] double move(double gradient, double& first, double& second) const {
    if (!std::isfinite(gradient)) return 0;
    first = kKeep * first + (1 - kKeep) * gradient;
    second = kKeepSquare * second + (1 - kKeepSquare) * gradient * gradient;
    return second == 0 ? 0 : way * (first / whole_first) / std::sqrt(second / whole_second);
  }
};

LinearAscent::LinearAscent(const LinearBounds& bounds, ValueId value, std::span<const double> rows,
                           RowCuts* cuts)
    : bounds_(bounds),
      value_(value),
      given_(rows),
      cuts_(cuts),
      size_(static_cast<std::size_t>(element_count(bounds.graph_.value(value).type.shape))),
      count_(rows.size() / size_),
      rows_(count_, bounds.graph_.values().size()),
      mix_(bounds.graph_.nodes().size()),
      first_(mix_.size()),
      second_(mix_.size()),
      kept_(mix_.size()) {
  for (std::size_t m = 0; m < bounds.maker_[value.index]; ++m) {
    const auto& forms = bounds.forms_[m];
    if (!forms || forms->outputs.empty() || !forms->outputs[0].other) continue;
    mix_[m].resize(forms->outputs[0].low.size() * count_);
    first_[m] = second_[m] = mix_[m];
  }
}

std::vector<double> LinearAscent::bounds() {
  kept_.assign(mix_.size(), {});
  rows_ = LinearBounds::Rows(count_, bounds_.graph_.values().size());
  rows_.mix = &mix_;
  rows_.kept = &kept_;
  rows_.cuts = cuts_;
  std::vector<double>& w = rows_.weights[value_.index];
  w.resize(size_ * count_);
  for (std::size_t r = 0; r < count_; ++r) {
    for (std::size_t e = 0; e < size_; ++e) w[e * count_ + r] = given_[r * size_ + e];
  }
  bounds_.run(rows_, bounds_.maker_[value_.index]);
  return bounds_.finish(rows_);
}

LinearAscent::Table LinearAscent::values() const {
  const std::size_t n = count_;
  const Graph& graph = bounds_.graph_;
  Table values(graph.values().size());
  std::vector<double> a(bounds_.support_.inputs());
  for (const ValueId id : graph.inputs()) {
    const auto size = static_cast<std::size_t>(element_count(graph.value(id).type.shape));
    if (is_floating(graph.value(id).type.type)) values[id.index].resize(size * n);
  }
  for (std::size_t r = 0; r < n; ++r) {
    bounds_.gather(rows_, r, a);
    const std::vector<double> x = bounds_.support_.lowest_point(a);
    std::size_t at = 0;
    for (const ValueId id : graph.inputs()) {
      std::vector<double>& to = values[id.index];
      for (std::size_t e = r; e < to.size(); e += n) to[e] = x[at++];
    }
  }
  for (std::size_t m = 0; m < bounds_.maker_[value_.index]; ++m) {
    const Node& node = graph.nodes()[m];
    if (!bounds_.nodes_.moves(node.outputs[0])) continue;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) forward(m, o, values);
  }
  return values;
}

void LinearAscent::forward(std::size_t m, std::size_t o, Table& values) const {
  const std::size_t n = count_;
  const Node& node = bounds_.graph_.nodes()[m];
  const bool affine = bounds_.nodes_.at(m) != nullptr;
  const auto& out = bounds_.forms_[m]->outputs[o];
  std::vector<double>& to = values[node.outputs[o].index];
  to.assign(out.low.size() * n, 0);
  if (affine) {
    for (std::size_t i = 0; i < out.low.size(); ++i) {
      double* sum = &to[i * n];
      std::fill_n(sum, n, std::isfinite(out.low[i]) ? out.low[i] : 0);
      for (const auto& block : out.blocks) {
        const SparseRows& rows = *block.below;
        const std::vector<double>& from = values[node.inputs[block.input].index];
        for (auto k = static_cast<std::size_t>(rows.begin[i]);
             k < static_cast<std::size_t>(rows.begin[i + 1]); ++k) {
          const double* x = &from[rows.columns[k] * n];
          for (std::size_t r = 0; r < n; ++r) sum[r] += rows.weights[k] * x[r];
        }
      }
    }
    return;
  }
  if (o > 0 || kept_[m].empty()) return;  // not on the way
  for (std::size_t i = 0; i < out.low.size(); ++i) {
    for (std::size_t r = 0; r < n; ++r) {
      const bool above = kept_[m][i * n + r] < 0;
      double value = above ? out.high[i] : out.low[i];
      for (const auto& block : out.blocks) {
        const SparseRows& rows = above ? *block.above : *block.below;
        const std::vector<double>& from = values[node.inputs[block.input].index];
        for (auto k = static_cast<std::size_t>(rows.begin[i]);
             k < static_cast<std::size_t>(rows.begin[i + 1]); ++k)
          value += rows.weights[k] * from[rows.columns[k] * n + r];
      }
      if (out.other && !mix_[m].empty()) {
        const double x = values[node.inputs[0].index][i * n + r], t = mix_[m][i * n + r];
        const double there = above ? out.other->above[i] * x + out.other->high[i]
                                   : out.other->below[i] * x + out.other->low[i];
        value += t * (there - value);
      }
      to[i * n + r] = std::isfinite(value) ? value : 0;
    }
  }
  if (cuts_ == nullptr) return;
  for (const RowCuts::Lines& cut : cuts_->lines[m]) {
    const std::size_t e = cut.entry * n + cut.row;
    const double x = values[node.inputs[0].index][e];
    const bool above = kept_[m][e] < 0;
    const EntryLines::Line& own = above ? cut.lines->above : cut.lines->below;
    const EntryLines::Line& other = above ? cut.lines->other_above : cut.lines->other_below;
    const double here = own.slope * x + own.offset, there = other.slope * x + other.offset;
    to[e] = here + (mix_[m].empty() ? 0 : mix_[m][e]) * (there - here);
  }
}

void LinearAscent::move(int step, int steps, double way) {
  const Pace pace(step, steps, way);
  const Table at = values();
  move_shares(pace, at);
  if (cuts_ != nullptr) move_multipliers(pace, at);
}

void LinearAscent::move_shares(const Pace& pace, const Table& values) {
  const std::size_t n = count_;
  std::vector<double> gradient;
  for (std::size_t m = 0; m < mix_.size(); ++m) {
    if (mix_[m].empty() || kept_[m].empty()) continue;
    const auto& out = bounds_.forms_[m]->outputs[0];
    const auto& other = *out.other;
    const std::vector<double>& x = values[bounds_.graph_.nodes()[m].inputs[0].index];
    gradient.resize(mix_[m].size());
    for (std::size_t e = 0; e < mix_[m].size(); ++e) {
      const std::size_t i = e / n;
      const double a = kept_[m][e];
      const SparseRows& own = a > 0 ? *out.blocks[0].below : *out.blocks[0].above;
      const auto k = static_cast<std::size_t>(own.begin[i]);
      const double slope = own.begin[i] < own.begin[i + 1] ? own.weights[k] : 0;
      gradient[e] = a > 0   ? a * ((other.below[i] - slope) * x[e] + other.low[i] - out.low[i])
                    : a < 0 ? a * ((other.above[i] - slope) * x[e] + other.high[i] - out.high[i])
                            : 0;
    }
    if (cuts_ != nullptr) {
      for (const RowCuts::Lines& cut : cuts_->lines[m]) {
        const std::size_t e = cut.entry * n + cut.row;
        const double a = kept_[m][e];
        const EntryLines::Line& from = a > 0 ? cut.lines->below : cut.lines->above;
        const EntryLines::Line& to = a > 0 ? cut.lines->other_below : cut.lines->other_above;
        gradient[e] = a * ((to.slope - from.slope) * x[e] + to.offset - from.offset);
      }
    }
    for (std::size_t e = 0; e < mix_[m].size(); ++e) {
      if (kept_[m][e] == 0) continue;
      const double move = pace.move(gradient[e], first_[m][e], second_[m][e]);
      mix_[m][e] = std::clamp(mix_[m][e] + move, 0.0, 1.0);
    }
  }
}

// The gradient of a multiplier is how far the entry is outside of its range; steps are measured by
// the weights of its value and the multipliers there.
void LinearAscent::move_multipliers(const Pace& pace, const Table& values) {
  for (std::size_t v = 0; v < values.size(); ++v) {
    std::vector<RowCuts::Limit>& limits = cuts_->limits[v];
    if (limits.empty() || values[v].empty()) continue;
    const std::size_t maker = bounds_.maker_[v];
    const std::vector<double>& weights = maker == 0 ? rows_.weights[v] : kept_[maker - 1];
    std::vector<double> scale(count_);
    for (std::size_t e = 0; e < weights.size(); ++e)
      scale[e % count_] = std::max(scale[e % count_], std::fabs(weights[e]));
    for (const RowCuts::Limit& limit : limits)
      scale[limit.row] = std::max(scale[limit.row], std::fabs(limit.multiplier));
    for (RowCuts::Limit& limit : limits) {
      const double x = values[v][limit.entry * count_ + limit.row];
      double& m = limit.multiplier;
      const bool low = m > 0 || (m == 0 && x < limit.range.lo);
      const bool high = m < 0 || (m == 0 && x > limit.range.hi);
      const double gradient = low ? limit.range.lo - x : high ? limit.range.hi - x : 0;
      const double moved = m + scale[limit.row] * pace.move(gradient, limit.first, limit.second);
      // Not past 0, where the other end begins.
      m = (low && moved > 0) || (high && moved < 0)
              ? std::clamp(moved, -RowCuts::kLargest, RowCuts::kLargest)
              : 0;
    }
  }
}

std::vector<double> LinearBounds::raised(ValueId value, std::span<const double> given,
                                         std::span<const double> enough, int steps) {
  constexpr double kWay = 0.4;
  std::vector<double> best = lower_by_box(value, given);
  LIPSCOPE_CHECK(enough.size() == best.size());
  if (!nodes_.moves(value) || best.empty()) return best;
  make_forms(maker_[value.index]);
  LinearAscent ascent(*this, value, given);
  for (int step = 0;; ++step) {
    const std::vector<double> found = ascent.bounds();
    bool done = true;
    for (std::size_t r = 0; r < best.size(); ++r) {
      best[r] = std::max(best[r], found[r]);
      done = done && best[r] > enough[r];
    }
    if (done || step >= steps || stop_()) return best;
    ascent.move(step, steps, kWay);
  }
}

}  // namespace lipscope

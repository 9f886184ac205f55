// SPDX-License-Identifier: Apache-2.0
#include "bounds/linear_parts.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rounding.h"
#include "bounds/linear_ascent.h"
#include "ops/elementwise/elementwise.h"

namespace lipscope {

struct LinearPart::NodeLines {
  std::size_t node = 0;
  EntryLines lines;
};

// Takes the weight of an output of a function of single entries to its input.
void LinearBounds::pull_cut(const EntryLines& lines, double weight, double share, std::size_t row,
                            double& to, Rows& rows) {
  const double second = weight * share, first = weight - second;
  const auto add = [&](double part, const EntryLines::Line& line) {
    if (part == 0) return;
    to += part * line.slope;
    const double term = part * line.offset;
    rows.constant[row] += term;
    rows.size[row] += std::fabs(term);
    rows.loss[row] += std::fabs(part) * line.loss;
  };
  add(first, weight > 0 ? lines.below : lines.above);
  add(second, weight > 0 ? lines.other_below : lines.other_above);
  if (second != 0) rows.loss[row] += std::fabs(weight) * lines.share_loss;
}

// Adds what is not positive on the part: minus a multiple of how far an entry is inside its range.
void LinearBounds::pull_multipliers(ValueId id, Rows& rows) {
  std::vector<double>& weights = rows.weights[id.index];
  const std::vector<RowCuts::Limit>& limits = rows.cuts->limits[id.index];
  if (weights.empty() || limits.empty()) return;
  for (const RowCuts::Limit& limit : limits) {
    const double m = limit.multiplier;
    if (m == 0 || !(std::fabs(m) <= RowCuts::kLargest) || !is_bounded(limit.range)) continue;
    double& weight = weights[limit.entry * rows.count + limit.row];
    weight -= m;
    const double term = m * (m > 0 ? limit.range.lo : limit.range.hi);
    rows.constant[limit.row] += term;
    rows.size[limit.row] += std::fabs(term);
    rows.loss[limit.row] += 0x1p-52 * std::fabs(weight) * magnitude(limit.range);
  }
  rows.terms += 3 * static_cast<double>(limits.size());
}

namespace {

// Where the slope jumps, or the middle.
double place_to_cut(const Elementwise& curve, const Interval& x) {
  constexpr double kMuch = 0.1;
  constexpr int kSteps = 80;
  const auto jump = [&](const Interval& y) {
    const auto slopes = curve.slopes(y);
    return slopes && is_bounded(*slopes) ? slopes->hi - slopes->lo : 0;
  };
  const double enough = kMuch * jump(x);
  const auto is_kink = [&](double t) { return x.lo < t && t < x.hi && jump(point(t)) > enough; };
  if (is_kink(0)) return 0;
  Interval y = x;
  for (int step = 0; step < kSteps; ++step) {
    const double middle = midpoint(y);
    if (!(y.lo < middle && middle < y.hi)) break;
    const Interval left{y.lo, middle}, right{middle, y.hi};
    y = jump(left) > jump(right) ? left : right;
  }
  return is_kink(y.lo) ? y.lo : is_kink(y.hi) ? y.hi : midpoint(x);
}

Interval entry_of(const Box& box, std::size_t e) {
  return {box.lower.doubles()[e], box.upper.doubles()[e]};
}

LinearPart::Cut* cut_of(LinearPart& part, ValueId value, std::size_t entry) {
  const auto found = std::ranges::find_if(part.cuts, [&](const LinearPart::Cut& cut) {
    return cut.value == value && cut.entry == entry;
  });
  return found == part.cuts.end() ? nullptr : &*found;
}

}  // namespace

LinearParts::LinearParts(LinearBounds& bounds, ValueId value, std::span<const double> rows)
    : bounds_(bounds),
      value_(value),
      size_(static_cast<std::size_t>(element_count(bounds.graph_.value(value).type.shape))),
      rows_(rows.begin(), rows.end()) {
  LIPSCOPE_CHECK(size_ > 0 && rows.size() % size_ == 0);
  const std::size_t upto = bounds.maker_[value.index];
  bounds.make_forms(upto);
  for (std::size_t m = 0; m < upto; ++m) {
    const auto& forms = bounds.forms_[m];
    if (!forms || forms->outputs.empty() || !forms->outputs[0].other) continue;
    const auto& out = forms->outputs[0];
    for (std::size_t i = 0; i < out.low.size(); ++i) {
      if (out.blocks[0].below->weights[i] != out.other->below[i] ||
          out.blocks[0].above->weights[i] != out.other->above[i])
        choices_.push_back({m, i});
    }
  }
}

LinearPart LinearParts::whole(std::size_t row) const {
  LIPSCOPE_CHECK(row < rows_.size() / size_);
  return {.row = row, .mix = std::vector<float>(choices_.size())};
}

LinearPart LinearParts::side(const LinearPart& part, const LinearPart::Place& place,
                             bool at_least) {
  LinearPart result = part;
  result.split.reset();
  LinearPart::Cut* cut = cut_of(result, place.value, place.entry);
  if (cut == nullptr) {
    const Interval range = entry_of(bounds_.values_.at(place.value), place.entry);
    result.cuts.push_back({place.value, place.entry, range});
    cut = &result.cuts.back();
  }
  Interval& range = cut->range;
  range = at_least ? Interval{std::max(range.lo, place.at), range.hi}
                   : Interval{range.lo, std::min(range.hi, place.at)};
  if (!(range.lo <= range.hi)) {
    result.bound = kInf;
    return result;
  }
  cut->lines = std::make_shared<const std::vector<LinearPart::NodeLines>>(
      lines_on(place.value, place.entry, range));
  return result;
}

// Of the functions of the entry, on a range of it.
std::vector<LinearPart::NodeLines> LinearParts::lines_on(ValueId value, std::size_t entry,
                                                         const Interval& range) {
  std::vector<LinearPart::NodeLines> result;
  const Box box{Tensor::vector(std::vector{range.lo}), Tensor::vector(std::vector{range.hi})};
  const double size = magnitude(range);
  const double rate =
      size > 0x1p100
          ? kInf
          : mul_up(gamma_up(static_cast<std::size_t>(bounds_.terms_[value.index]) + 2), size);
  for (std::size_t m = 0; m < bounds_.maker_[value_.index]; ++m) {
    const Node& node = bounds_.graph_.nodes()[m];
    const Elementwise* curve = node.op->elementwise();
    const auto& forms = bounds_.forms_[m];
    if (curve == nullptr || node.inputs[0] != value || !forms || !forms->outputs[0].other) continue;
    const auto own = curve->relax(std::span(&box, 1));
    const auto other = curve->other_lines(box);
    if (!own || !other) continue;
    const auto line = [&](const AffineRows& rows) {
      return EntryLines::Line{rows.weights[0], rows.offsets[0],
                              mul_up(rate, std::fabs(rows.weights[0]))};
    };
    result.push_back({m,
                      {.below = line(own->lower),
                       .above = line(own->upper),
                       .other_below = line(other->lower),
                       .other_above = line(other->upper),
                       .share_loss = mul_up(0x1p-52, bounds_.size_of(node.outputs[0], entry))}});
  }
  return result;
}

void LinearParts::raise(std::span<LinearPart> parts, std::span<const double> enough, int steps) {
  constexpr double kWay = 0.4, kChosenWay = 0.2;
  // Without those that have no point.
  std::vector<std::size_t> places;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (parts[p].bound < kInf) places.push_back(p);
  }
  if (places.empty() || !bounds_.nodes_.moves(value_)) return;
  const std::size_t n = places.size();
  const bool chosen =
      std::ranges::any_of(parts, [](const auto& part) { return !part.cuts.empty(); });
  std::vector<double> rows;
  RowCuts cuts{.lines = std::vector<std::vector<RowCuts::Lines>>(bounds_.graph_.nodes().size()),
               .limits = std::vector<std::vector<RowCuts::Limit>>(bounds_.graph_.values().size())};
  for (std::size_t r = 0; r < n; ++r) {
    const LinearPart& part = parts[places[r]];
    rows.insert(rows.end(), rows_.begin() + static_cast<Index>(part.row * size_),
                rows_.begin() + static_cast<Index>((part.row + 1) * size_));
    for (const LinearPart::Cut& cut : part.cuts) {
      cuts.limits[cut.value.index].push_back({cut.entry, r, cut.range, cut.multiplier});
      for (const LinearPart::NodeLines& lines : *cut.lines)
        cuts.lines[lines.node].push_back({cut.entry, r, &lines.lines});
    }
  }
  for (auto& lines : cuts.lines) std::ranges::sort(lines, {}, &RowCuts::Lines::entry);
  LinearAscent ascent(bounds_, value_, rows, &cuts);
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t c = 0; c < choices_.size(); ++c)
      ascent.mix()[choices_[c].node][choices_[c].entry * n + r] = parts[places[r]].mix[c];
  }
  for (int step = 0;; ++step) {
    const std::vector<double> found = ascent.bounds();
    bool done = true;
    for (std::size_t r = 0; r < n; ++r) {
      LinearPart& part = parts[places[r]];
      part.bound = std::max(part.bound, found[r]);
      done = done && part.bound > enough[part.row];
    }
    if (done) return;
    if (step >= steps || bounds_.stop_()) break;
    ascent.move(step, steps, chosen ? kChosenWay : kWay);
  }
  for (std::size_t r = 0; r < n; ++r) {
    LinearPart& part = parts[places[r]];
    for (std::size_t c = 0; c < choices_.size(); ++c)
      part.mix[c] = static_cast<float>(ascent.mix()[choices_[c].node][choices_[c].entry * n + r]);
  }
  for (std::size_t v = 0; v < cuts.limits.size(); ++v) {
    for (const RowCuts::Limit& limit : cuts.limits[v]) {
      LinearPart& part = parts[places[limit.row]];
      cut_of(part, ValueId{static_cast<std::uint32_t>(v)}, limit.entry)->multiplier =
          limit.multiplier;
    }
  }
  find_splits(parts, places, ascent, cuts);
}

// The entry whose line is furthest from the function where the bound is taken, times its weight.
void LinearParts::find_splits(std::span<LinearPart> parts, const std::vector<std::size_t>& places,
                              const LinearAscent& ascent, const RowCuts& cuts) {
  constexpr double kElsewhere = 0.05;  // how much a line counts that is exact where the bound is
  constexpr double kStraight = 1e-9;
  const std::size_t n = places.size();
  const LinearAscent::Table values = ascent.values();
  struct Best {
    double score = 0;
    std::size_t node = 0, entry = 0;
    Interval range;
  };
  std::vector<Best> best(n);
  for (std::size_t m = 0; m < bounds_.maker_[value_.index]; ++m) {
    const std::vector<double>& weights = ascent.weights()[m];
    const auto& forms = bounds_.forms_[m];
    if (weights.empty() || !forms || !forms->outputs[0].other) continue;
    const auto& out = forms->outputs[0];
    const Node& node = bounds_.graph_.nodes()[m];
    const Box& box = bounds_.values_.at(node.inputs[0]);
    std::vector<Interval> ranges;
    for (std::size_t e = 0; e < weights.size(); ++e) ranges.push_back(entry_of(box, e / n));
    for (const RowCuts::Limit& limit : cuts.limits[node.inputs[0].index])
      ranges[limit.entry * n + limit.row] = limit.range;
    std::vector<double> x = values[node.inputs[0].index];
    for (std::size_t e = 0; e < x.size(); ++e) x[e] = std::clamp(x[e], ranges[e].lo, ranges[e].hi);
    const Tensor at = Tensor::vector(x);
    const Box there{at, at};
    const Box y = node.op->range(std::span(&there, 1))->front();
    const auto consider = [&](std::size_t e, const EntryLines::Line& below,
                              const EntryLines::Line& above) {
      const Interval& range = ranges[e];
      if (weights[e] == 0 || !(range.lo < range.hi) || !is_bounded(range)) return;
      const auto gap = [&](double t) {
        return (above.slope - below.slope) * t + above.offset - below.offset;
      };
      const double most = std::max(gap(range.lo), gap(range.hi));
      const double rise = (std::fabs(above.slope) + std::fabs(below.slope)) * (range.hi - range.lo);
      if (!(most > kStraight * rise)) return;
      const double value = midpoint(entry_of(y, e));
      const double off = weights[e] > 0 ? value - (below.slope * x[e] + below.offset)
                                        : above.slope * x[e] + above.offset - value;
      const double score = std::fabs(weights[e]) * (std::max(off, 0.0) + kElsewhere * most);
      Best& top = best[e % n];
      if (score > top.score) top = {score, m, e / n, range};
    };
    std::vector<bool> cut(weights.size());
    for (const RowCuts::Lines& lines : cuts.lines[m]) {
      const std::size_t e = lines.entry * n + lines.row;
      cut[e] = true;
      consider(e, lines.lines->below, lines.lines->above);
    }
    for (std::size_t e = 0; e < weights.size(); ++e) {
      const std::size_t i = e / n;
      if (cut[e]) continue;
      consider(e, {out.blocks[0].below->weights[i], out.low[i]},
               {out.blocks[0].above->weights[i], out.high[i]});
    }
  }
  for (std::size_t r = 0; r < n; ++r) {
    LinearPart& part = parts[places[r]];
    part.split.reset();
    const Best& top = best[r];
    if (!(top.score > 0)) continue;
    const Node& node = bounds_.graph_.nodes()[top.node];
    const auto& curve = *node.op->elementwise();
    part.split = LinearPart::Place{node.inputs[0], top.entry, place_to_cut(curve, top.range)};
  }
}

}  // namespace lipscope

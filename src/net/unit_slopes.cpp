// SPDX-License-Identifier: Apache-2.0
#include "net/unit_slopes.h"

#include <algorithm>

#include "base/rounding.h"
#include "ops/elementwise/elementwise.h"
#include "ops/windows/max_windows.h"

namespace lipscope {

std::vector<Interval> intervals_of(const Box& box) {
  const auto lower = box.lower.doubles(), upper = box.upper.doubles();
  std::vector<Interval> entries;
  for (std::size_t i = 0; i < lower.size(); ++i) entries.push_back({lower[i], upper[i]});
  return entries;
}

std::optional<std::vector<Interval>> slopes_on(const Elementwise& phi,
                                               const std::vector<Interval>& ranges) {
  std::vector<Interval> slopes;
  for (const Interval& x : ranges) {
    const auto slope = phi.slopes(x);
    if (!slope || !is_bounded(*slope)) return std::nullopt;
    slopes.push_back(*slope);
  }
  return slopes;
}

std::vector<Interval> prelu_slopes_on(const std::vector<double>& below,
                                      const std::vector<Interval>& ranges) {
  std::vector<Interval> slopes;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    slopes.push_back(ranges[i].lo >= 0   ? point(1)
                     : ranges[i].hi <= 0 ? point(below[i])
                                         : hull(point(below[i]), point(1)));
  }
  return slopes;
}

std::vector<Interval> lead_slopes_on(const std::vector<Interval>& a,
                                     const std::vector<Interval>& b) {
  std::vector<Interval> slopes;
  for (std::size_t i = 0; i < a.size(); ++i)
    slopes.push_back(b[i].hi <= a[i].lo ? point(0) : Interval{0, 1});
  return slopes;
}

void widen(std::vector<Interval>& slopes) {
  for (Interval& slope : slopes) {
    const double least = 1e-4 * std::max(magnitude(slope), 1e-2);
    if ((slope.lo == 0 && slope.hi == 0) || slope.hi - slope.lo >= least) continue;
    slope = {sub_down(slope.lo, least), add_up(slope.hi, least)};
  }
}

PairedRound pair_up(Windows& windows, const std::vector<Interval>& ranges) {
  PairedRound round;
  std::vector<Interval> a, b;
  const auto range = [&](Index i) { return ranges[static_cast<std::size_t>(i)]; };
  for (std::vector<Index>& window : windows) {
    std::vector<Index> winners;
    for (std::size_t i = 0; i < window.size(); i += 2) {
      const bool rival = i + 1 < window.size();
      const Interval x = range(window[i]), y = range(window[rival ? i + 1 : i]);
      winners.push_back(std::ssize(round.first));
      round.first.push_back(window[i]);
      round.meets.push_back(rival ? std::ssize(round.a) : -1);
      round.ranges.push_back({std::max(x.lo, y.lo), std::max(x.hi, y.hi)});
      if (!rival) continue;
      round.a.push_back(window[i]);
      round.b.push_back(window[i + 1]);
      a.push_back(x);
      b.push_back(y);
    }
    window = std::move(winners);
  }
  round.slopes = lead_slopes_on(a, b);
  return round;
}

std::optional<std::vector<Interval>> slopes_on(const UnitNode& node, const BoxOf& box) {
  if (const auto& [maximum, number, a, b] = node.lead; maximum != nullptr) {
    std::vector<Interval> ranges = intervals_of(box(a));
    const MaxWindows* pool = maximum->op->max_windows();
    if (pool == nullptr) return lead_slopes_on(ranges, intervals_of(box(b)));
    auto windows = pool->windows();
    PairedRound round = pair_up(windows, ranges);
    for (int n = 0; n < number; ++n) round = pair_up(windows, round.ranges);
    return std::move(round.slopes);
  }
  const std::vector<Interval> ranges = intervals_of(box(node.origin->inputs[0]));
  auto slopes = node.below.empty() ? slopes_on(*node.origin->op->elementwise(), ranges)
                                   : prelu_slopes_on(node.below, ranges);
  const auto one = [](const Interval& slope) { return slope.lo == slope.hi; };
  if (!slopes || (node.below.empty() && std::ranges::all_of(*slopes, one))) return std::nullopt;
  widen(*slopes);
  return slopes;
}

}  // namespace lipscope

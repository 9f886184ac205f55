// SPDX-License-Identifier: Apache-2.0
#include "search/sharper_ranges.h"

#include <algorithm>
#include <cmath>

#include "net/small.h"
#include "search/slope_ascent.h"

namespace lipscope {
namespace {

constexpr double kWorthwhile = 1e-3;  // of the width of a range

std::vector<std::size_t> open_places(const LayeredNet& net, const PreactivationBounds& bounds,
                                     std::size_t k) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < bounds.ranges()[k].size(); ++i) {
    if (net.layers[k].form(i).is_unstable(bounds.ranges()[k][i])) places.push_back(i);
  }
  return places;
}

}  // namespace

void sharpen_ranges(const LayeredNet& net, const DomainSupport& domain, int steps,
                    const std::function<bool()>& stop, PreactivationBounds& bounds,
                    SharpEnds* found) {
  SlopeAscent ascent(net, domain, bounds);
  for (std::size_t k = 1; k < net.hidden() && !stop(); ++k) {
    const std::vector<std::size_t> places = open_places(net, bounds, k);
    if (places.empty()) continue;
    ascent.number_unstable_units(k);
    const SlopeAscent::Targets targets = ascent.unit_targets(k, places);
    std::vector<SlopeAscent::Part> ends;
    for (std::size_t t = 0; t < 2 * places.size(); ++t)
      ends.push_back(ascent.whole(static_cast<Index>(t)));
    SlopeAscent::Pass pass;
    pass.remember = found != nullptr;
    ascent.raise(targets, ends, std::vector<double>(ends.size(), kInf), steps, stop, pass);
    std::vector<std::vector<std::uint8_t>> mixes;
    if (found != nullptr) {
      // What is recorded counts.
      for (std::size_t t = 0; t < ends.size(); ++t) {
        SlopeAscent::Part& end = ends[t];
        end.mixes = pass.best[t];
        mixes.push_back(recorded_mixes(net, k, ascent, end));
        (void)replay_mixes(net, ascent, {{k, 0}, false, mixes.back()}, end);
        end.bound = -kInf;
      }
      ascent.evaluate(targets, ends, pass);
    }
    std::vector<Interval> ranges = bounds.ranges()[k];
    const auto gains = shrink_to_ends(places, ends, found != nullptr ? kWorthwhile : 0, ranges);
    for (std::size_t t = 0; t < ends.size() && found != nullptr; ++t) {
      if (gains[t]) found->push_back({{k, places[t / 2]}, t % 2 != 0, std::move(mixes[t])});
    }
    if (std::ranges::find(gains, true) != gains.end()) bounds.tighten(k, ranges);
  }
}

double sharpening_cost(const LayeredNet& net, const PreactivationBounds& bounds) {
  double cost = 0, before = 0;
  for (std::size_t k = 1; k < net.hidden(); ++k) {
    before += static_cast<double>(net.layers[k - 1].weights.size());
    cost += 4 * static_cast<double>(open_places(net, bounds, k).size()) * before;
  }
  return cost;
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "pieces/sharper_ranges.h"

#include <algorithm>
#include <cmath>

#include "pieces/slope_ascent.h"
#include "pieces/small.h"

namespace lipscope {
namespace {

constexpr float kLevels = 255;        // of a recorded mix
constexpr double kWorthwhile = 1e-3;  // of the width of a range

std::vector<std::size_t> open_places(const LayeredNet& net, const ForwardBounds& bounds,
                                     std::size_t k) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < bounds.ranges()[k].size(); ++i) {
    if (net.layers[k].form(i).is_open(bounds.ranges()[k][i])) places.push_back(i);
  }
  return places;
}

// One number per unit of the layers before.
std::vector<std::uint8_t> recorded(const LayeredNet& net, std::size_t layer,
                                   const SlopeAscent& ascent, const SlopeAscent::Part& part) {
  std::vector<std::size_t> first{0};
  for (std::size_t k = 0; k < layer; ++k) first.push_back(first[k] + at(net.layers[k].out));
  std::vector<std::uint8_t> mixes(first[layer]);
  for (std::size_t o = 0; o < part.mixes.size(); ++o) {
    const auto [k, i] = ascent.open()[o];
    mixes[first[k] + i] = static_cast<std::uint8_t>(std::lround(part.mixes[o] * kLevels));
  }
  return mixes;
}

bool replay(const LayeredNet& net, const SlopeAscent& ascent, const CaseTree::SharpEnd& end,
            SlopeAscent::Part& part) {
  std::vector<std::size_t> first{0};
  for (std::size_t k = 0; k < end.unit.layer; ++k)
    first.push_back(first[k] + at(net.layers[k].out));
  if (end.mixes.size() != first.back()) return false;
  for (std::size_t o = 0; o < part.mixes.size(); ++o) {
    const auto [k, i] = ascent.open()[o];
    part.mixes[o] = static_cast<float>(end.mixes[first[k] + i]) / kLevels;
  }
  return true;
}

// Takes over the ends that gain enough; those of parts are lower, upper, lower, ...
std::vector<bool> shrink(const std::vector<std::size_t>& places,
                         const std::vector<SlopeAscent::Part>& parts, double least,
                         std::vector<Interval>& ranges) {
  std::vector<bool> gains(parts.size());
  for (std::size_t r = 0; r < parts.size(); ++r) {
    const auto t = at(parts[r].target);
    Interval& range = ranges[places[t / 2]];
    const double gain = t % 2 == 0 ? parts[r].bound - range.lo : range.hi + parts[r].bound;
    gains[r] = gain > least * (range.hi - range.lo) && gain > 0;
    if (!gains[r]) continue;
    if (t % 2 == 0) {
      range.lo = parts[r].bound;
    } else {
      range.hi = -parts[r].bound;
    }
  }
  return gains;
}

}  // namespace

void sharpen_ranges(const LayeredNet& net, const DomainSupport& domain, int steps,
                    const std::function<bool()>& stop, ForwardBounds& bounds, SharpEnds* found) {
  SlopeAscent ascent(net, domain, bounds);
  for (std::size_t k = 1; k < net.hidden() && !stop(); ++k) {
    const std::vector<std::size_t> places = open_places(net, bounds, k);
    if (places.empty()) continue;
    ascent.number_open_units(k);
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
        mixes.push_back(recorded(net, k, ascent, end));
        (void)replay(net, ascent, {{k, 0}, false, mixes.back()}, end);
        end.bound = -kInf;
      }
      ascent.evaluate(targets, ends, pass);
    }
    std::vector<Interval> ranges = bounds.ranges()[k];
    const auto gains = shrink(places, ends, found != nullptr ? kWorthwhile : 0, ranges);
    for (std::size_t t = 0; t < ends.size() && found != nullptr; ++t) {
      if (gains[t]) found->push_back({{k, places[t / 2]}, t % 2 != 0, std::move(mixes[t])});
    }
    if (std::ranges::find(gains, true) != gains.end()) bounds.tighten(k, ranges);
  }
}

bool apply_sharp_ends(const LayeredNet& net, const DomainSupport& domain, const SharpEnds& ends,
                      ForwardBounds& bounds) {
  SlopeAscent ascent(net, domain, bounds);
  for (std::size_t begin = 0; begin < ends.size();) {
    const std::size_t k = ends[begin].unit.layer;
    if (k == 0 || k >= net.hidden()) return false;
    ascent.number_open_units(k);
    std::vector<std::size_t> places;
    std::vector<SlopeAscent::Part> parts;
    for (; begin < ends.size() && ends[begin].unit.layer == k; ++begin) {
      const CaseTree::SharpEnd& end = ends[begin];
      if (end.unit.place >= at(net.layers[k].out)) return false;
      if (places.empty() || places.back() != end.unit.place) places.push_back(end.unit.place);
      parts.push_back(ascent.whole(static_cast<Index>(2 * places.size() - (end.above ? 1 : 2))));
      if (!replay(net, ascent, end, parts.back())) return false;
    }
    SlopeAscent::Pass pass;
    ascent.evaluate(ascent.unit_targets(k, places), parts, pass);
    std::vector<Interval> ranges = bounds.ranges()[k];
    (void)shrink(places, parts, 0, ranges);
    bounds.tighten(k, ranges);
  }
  return true;
}

double sharpening_cost(const LayeredNet& net, const ForwardBounds& bounds) {
  double cost = 0, before = 0;
  for (std::size_t k = 1; k < net.hidden(); ++k) {
    before += static_cast<double>(net.layers[k - 1].weights.size());
    cost += 4 * static_cast<double>(open_places(net, bounds, k).size()) * before;
  }
  return cost;
}

}  // namespace lipscope

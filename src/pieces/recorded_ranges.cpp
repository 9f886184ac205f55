// SPDX-License-Identifier: Apache-2.0
#include "pieces/recorded_ranges.h"

#include <algorithm>
#include <cmath>

#include "net/small.h"

namespace lipscope {
namespace {

constexpr float kLevels = 255;  // of a recorded mix

}  // namespace

std::vector<std::uint8_t> recorded_mixes(const LayeredNet& net, std::size_t layer,
                                         const SlopeBounds& slopes, const SlopeBounds::Part& part) {
  std::vector<std::size_t> first{0};
  for (std::size_t k = 0; k < layer; ++k) first.push_back(first[k] + to_size(net.layers[k].out));
  std::vector<std::uint8_t> mixes(first[layer]);
  for (std::size_t o = 0; o < part.mixes.size(); ++o) {
    const auto [k, i] = slopes.open()[o];
    mixes[first[k] + i] = static_cast<std::uint8_t>(std::lround(part.mixes[o] * kLevels));
  }
  return mixes;
}

bool replay_mixes(const LayeredNet& net, const SlopeBounds& slopes, const CaseTree::SharpEnd& end,
                  SlopeBounds::Part& part) {
  std::vector<std::size_t> first{0};
  for (std::size_t k = 0; k < end.unit.layer; ++k)
    first.push_back(first[k] + to_size(net.layers[k].out));
  if (end.mixes.size() != first.back()) return false;
  for (std::size_t o = 0; o < part.mixes.size(); ++o) {
    const auto [k, i] = slopes.open()[o];
    part.mixes[o] = static_cast<float>(end.mixes[first[k] + i]) / kLevels;
  }
  return true;
}

std::vector<bool> shrink_to_ends(const std::vector<std::size_t>& places,
                                 const std::vector<SlopeBounds::Part>& parts, double least,
                                 std::vector<Interval>& ranges) {
  std::vector<bool> gains(parts.size());
  for (std::size_t r = 0; r < parts.size(); ++r) {
    const auto t = to_size(parts[r].target);
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

bool apply_sharp_ends(const LayeredNet& net, const DomainSupport& domain, const SharpEnds& ends,
                      PreactivationBounds& bounds) {
  SlopeBounds slopes(net, domain, bounds);
  for (std::size_t begin = 0; begin < ends.size();) {
    const std::size_t k = ends[begin].unit.layer;
    if (k == 0 || k >= net.hidden()) return false;
    slopes.number_unstable_units(k);
    std::vector<std::size_t> places;
    std::vector<SlopeBounds::Part> parts;
    for (; begin < ends.size() && ends[begin].unit.layer == k; ++begin) {
      const CaseTree::SharpEnd& end = ends[begin];
      if (end.unit.place >= to_size(net.layers[k].out)) return false;
      if (places.empty() || places.back() != end.unit.place) places.push_back(end.unit.place);
      parts.push_back(slopes.whole(static_cast<Index>(2 * places.size() - (end.above ? 1 : 2))));
      if (!replay_mixes(net, slopes, end, parts.back())) return false;
    }
    SlopeBounds::Pass pass;
    slopes.evaluate(slopes.unit_targets(k, places), parts, pass);
    std::vector<Interval> ranges = bounds.ranges()[k];
    (void)shrink_to_ends(places, parts, 0, ranges);
    bounds.tighten(k, ranges);
  }
  return true;
}

}  // namespace lipscope

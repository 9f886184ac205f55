// SPDX-License-Identifier: Apache-2.0
// Slopes of units where the values before them are in given ranges.
#pragma once

#include <optional>
#include <vector>

#include "net/unit_network.h"

namespace lipscope {

class Elementwise;

[[nodiscard]] std::vector<Interval> intervals_of(const Box& box);

// Nothing where one of them is not finite.
[[nodiscard]] std::optional<std::vector<Interval>> slopes_on(const Elementwise& phi,
                                                             const std::vector<Interval>& ranges);
// Of functions with slope 1 above zero.
[[nodiscard]] std::vector<Interval> prelu_slopes_on(const std::vector<double>& below,
                                                    const std::vector<Interval>& ranges);
// Of relu(b - a).
[[nodiscard]] std::vector<Interval> lead_slopes_on(const std::vector<Interval>& a,
                                                   const std::vector<Interval>& b);

// An interval without width would ask for an infinite multiplier; a wider one is as true.
void widen(std::vector<Interval>& slopes);

// One round of maxima over windows of entries: entries meet in pairs.
using Windows = std::vector<std::vector<Index>>;
struct PairedRound {
  std::vector<Index> a, b;          // old entries that meet
  std::vector<Index> first, meets;  // of each entry that is left; -1: it had no rival
  std::vector<Interval> ranges;     // of the entries that are left
  std::vector<Interval> slopes;     // of relu(b - a)
};
// Leaves the windows of the entries that are left.
[[nodiscard]] PairedRound pair_up(Windows& windows, const std::vector<Interval>& ranges);

// Of a node that is not the input or the output of its network. Nothing where one is not finite, or
// where the node is a function of the graph that is linear in every entry.
[[nodiscard]] std::optional<std::vector<Interval>> slopes_on(const UnitNode& node,
                                                             const BoxOf& box);

}  // namespace lipscope

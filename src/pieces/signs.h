// SPDX-License-Identifier: Apache-2.0
// What is decided about the units of a piecewise linear network.
#pragma once

#include <cstdint>

#include "pieces/region.h"

namespace lipscope {

// By layer: -1 where the value before the unit is negative, 1 where it is positive, 0 where that is
// open.
using Signs = std::vector<std::vector<std::int8_t>>;

[[nodiscard]] Signs open_signs(const LayeredNet& net);
// Splits elsewhere than at zero say nothing. Nothing for a path that has both sides of a unit.
[[nodiscard]] std::optional<Signs> signs_of(const LayeredNet& net, const Path& path);
// Of the values at a point, up to rounding.
[[nodiscard]] Signs signs_at(const LayeredNet& net, const std::vector<double>& point);
[[nodiscard]] bool agrees(const Signs& signs, const Signs& with);
[[nodiscard]] Slopes slopes_of(const LayeredNet& net, const Signs& signs);
// Whether a sign would change a slope.
[[nodiscard]] inline bool is_open(const LayeredNet& net, const Signs& signs, UnitId unit) {
  const double below = net.layers[unit.layer].below[unit.place];
  const double above = net.layers[unit.layer].above[unit.place];
  return signs[unit.layer][unit.place] == 0 && (below < above || below > above);
}

// How far from x in direction d (or -d) the nearest kink is, up to rounding.
[[nodiscard]] double way_to_kink(const LayeredNet& net, const std::vector<double>& x,
                                 const std::vector<double>& d);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace lipscope {

// The point of a box with the largest distance to the nearest of some planes, by the simplex method
// with bounded variables, in plain arithmetic. Rows: weights x + offset >= 0.
struct WidestPoint {
  std::vector<double> x;
  double slack = 0;             // smallest distance; negative when the planes leave nothing
  std::vector<double> weights;  // one per row; of those that stop the point from going further
};
struct PlaneRows {
  std::span<const double> weights;  // rows one after another
  std::span<const double> offsets;
};
// `start`: where to begin. Without `to_the_end` any point with positive slack will do.
[[nodiscard]] WidestPoint widest_point(const PlaneRows& rows, std::span<const double> low,
                                       std::span<const double> high, std::span<const double> start,
                                       bool to_the_end);

}  // namespace lipscope

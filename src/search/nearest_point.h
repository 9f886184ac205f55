// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace lipscope {

// The point nearest to the origin of the convex hull of some points (Wolfe's algorithm), in plain
// arithmetic. Where it is not the origin, it makes an angle below 90 degrees with every point;
// where it is, the weights name points around the origin.
struct NearestPoint {
  std::vector<double> x;
  std::vector<std::size_t> points;  // affinely independent
  std::vector<double> weights;      // positive, of sum 1
};
// `points`: all of the same length.
[[nodiscard]] NearestPoint nearest_point(const std::vector<std::vector<double>>& points);

}  // namespace lipscope

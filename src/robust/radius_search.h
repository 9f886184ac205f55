// SPDX-License-Identifier: Apache-2.0
// Looks for the largest radius that something can be proved for.
#pragma once

#include <algorithm>
#include <cmath>

namespace lipscope {

struct RadiusRange {
  double low = 0, high = 0;  // proved; not proved, as far as is known
};

// Radii to try next.
[[nodiscard]] inline double middle_of(const RadiusRange& range) {
  return 0.5 * (range.low + range.high);
}
// Without a proof yet, such a share of the other end.
[[nodiscard]] inline double geometric_middle_of(const RadiusRange& range, double share) {
  return range.low > 0 ? std::sqrt(range.low * range.high) : range.high * share;
}

// Narrows the range until its ends are within a factor of `close`. `attempt` returns the largest
// radius that is proved after it tried the one it is given.
template <class Next, class Attempt, class Stop>
void narrow_radius(RadiusRange& range, int tries, double close, const Next& next,
                   const Attempt& attempt, const Stop& stop) {
  for (int step = 0; step < tries && range.high > close * range.low && !stop(); ++step) {
    const double radius = next(range);
    if (!(radius > range.low && radius < range.high)) return;
    const double proved = attempt(radius);
    range.low = std::max(range.low, proved);
    if (!(proved >= radius)) range.high = radius;
  }
}

inline constexpr double kCloseRadii = 1.03;

}  // namespace lipscope

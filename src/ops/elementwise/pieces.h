// SPDX-License-Identifier: Apache-2.0
// Ranges of functions that are monotone between known points. Theory: [activations-1] in
// docs/theory/activations.md.
#pragma once

#include <initializer_list>

#include "base/check.h"
#include "base/interval.h"

namespace lipscope {

// A point somewhere in `where`, at which the function takes a value in `value`.
struct Turn {
  Interval where, value;
};

// Holds g(t) for every t in x, where g is monotone between consecutive turns. at(t) encloses g(t);
// an infinite end of x is passed as it is and stands for the limit.
template <class At>
[[nodiscard]] Interval over_pieces(const Interval& x, At&& at,
                                   std::initializer_list<Turn> turns = {}) {
  if (is_nan(x)) return kNoInterval;
  Interval all = at(x.lo);
  if (x.lo == x.hi) return all;
  all = hull(all, at(x.hi));
  for (const Turn& turn : turns) {
    if (turn.where.lo <= x.hi && x.lo <= turn.where.hi) all = hull(all, turn.value);
  }
  return all;
}

// Encloses every sign change of q between the two points, in either order: q is proved negative
// between `negative` and the result and, if the sign changes once, positive beyond it. q(t)
// encloses a continuous function.
template <class Q>
[[nodiscard]] Interval sign_change(double negative, double positive, Q&& q) {
  LIPSCOPE_CHECK(q(point(negative)).hi < 0 && q(point(positive)).lo > 0);
  const auto approach = [](double sure, double open, auto&& proved) {
    for (;;) {
      const double middle = 0.5 * sure + 0.5 * open;
      if (middle == sure || middle == open) return sure;
      (proved(middle) ? sure : open) = middle;
    }
  };
  const double a = approach(negative, positive, [&](double t) { return q(point(t)).hi < 0; });
  const double b = approach(positive, a, [&](double t) { return q(point(t)).lo > 0; });
  return {a < b ? a : b, a < b ? b : a};
}

// Smallest interval holding those of `x` and `y` that are wanted; NaN if neither is.
[[nodiscard]] constexpr Interval hull_if(bool want_x, const Interval& x, bool want_y,
                                         const Interval& y) {
  if (want_x && want_y) return hull(x, y);
  return want_x ? x : want_y ? y : kNoInterval;
}

}  // namespace lipscope

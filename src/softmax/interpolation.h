// SPDX-License-Identifier: Apache-2.0
// Norms of a symmetric matrix between those known: log of the 1/p -> 1/q norm is convex on the
// unit square [softmax-10].
#pragma once

#include "base/interval.h"
#include "lipscope/norm.h"

namespace lipscope {

// 1/p.
[[nodiscard]] Interval inverse(Norm p);
// 1/q - 1/p.
[[nodiscard]] Interval inverse_difference(const NormPair& norms);
// a or 1 - a, whichever is at least 1/2: the same norm, by symmetry.
[[nodiscard]] Interval reflected(const Interval& a);
// 2^x, exact for integers.
[[nodiscard]] Interval power_of_two(const Interval& x);
[[nodiscard]] Interval clip(const Interval& x, double lo, double hi);

// Upper bound of a^(1-t) b^t for some t in the interval, part of [0, 1].
[[nodiscard]] double between_up(double a, double b, const Interval& t);

// (1/p, 1/q) as a point between a corner of the square, 1 -> inf if p < q and inf -> 1 if p > q,
// and the diagonal.
struct SquarePlace {
  Interval corner_weight{0, 0};
  Interval diagonal{0.5, 0.5};  // 1/r, in [1/2, 1], where the r -> r norm is needed
};
[[nodiscard]] SquarePlace square_place(const NormPair& norms);

// Upper bounds that hold for complex vectors, too.
struct KnownNorms {
  double variance;  // 1 -> inf
  double one;       // 1 -> 1 and inf -> inf
  double two;       // 2 -> 2
  double cut;       // inf -> 1
};
// Upper bound of the p -> q norm from these four.
[[nodiscard]] double interpolated_up(const KnownNorms& known, const NormPair& norms);

}  // namespace lipscope

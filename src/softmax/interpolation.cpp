// SPDX-License-Identifier: Apache-2.0
#include "softmax/interpolation.h"

#include <algorithm>
#include <cmath>

namespace lipscope {

Interval inverse(Norm p) {
  return p.p() == kInf ? point(0) : Interval{div_down(1, p.p()), div_up(1, p.p())};
}

Interval inverse_difference(const NormPair& norms) {
  return norms.in == norms.out ? point(0) : inverse(norms.out) - inverse(norms.in);
}

Interval clip(const Interval& x, double lo, double hi) {
  return {std::clamp(x.lo, lo, hi), std::clamp(x.hi, lo, hi)};
}

Interval reflected(const Interval& a) {
  if (a.lo >= 0.5) return clip(a, 0.5, 1);
  if (a.hi <= 0.5) return clip(1 - a, 0.5, 1);
  return {0.5, std::max(a.hi, sub_up(1, a.lo))};
}

Interval power_of_two(const Interval& x) {
  if (x.lo == x.hi && x.lo == std::floor(x.lo) && std::fabs(x.lo) < 1000) {
    return point(std::ldexp(1.0, static_cast<int>(x.lo)));
  }
  return {pow_down(2, x.lo), pow_up(2, x.hi)};
}

double between_up(double a, double b, const Interval& t) {
  if (t.hi <= 0) return a;
  if (t.lo >= 1) return b;
  if (a == 0 || b == 0) return 0;
  if (a == kInf || b == kInf) return kInf;
  const Interval log_a{log_down(a), log_up(a)}, slope = Interval{log_down(b), log_up(b)} - log_a;
  const double value = add_up(log_a.hi, std::max((t.lo * slope).hi, (t.hi * slope).hi));
  return std::min(std::max(a, b), exp_up(value));
}

SquarePlace square_place(const NormPair& norms) {
  const Interval a = inverse(norms.in), b = inverse(norms.out);
  if (norms.in == norms.out) return {point(0), reflected(a)};
  SquarePlace place;
  const Interval apart = a - b;
  place.corner_weight = clip(abs(apart), 0, 1);
  const Interval left = 1 - place.corner_weight;
  if (left.lo <= 0) return {point(1), point(1)};  // 1 -> inf or inf -> 1
  place.diagonal = reflected(clip((norms.in.p() < norms.out.p() ? b : a) / left, 0, 1));
  return place;
}

double interpolated_up(const KnownNorms& known, const NormPair& norms) {
  const SquarePlace place = square_place(norms);
  const double diagonal = between_up(known.one, known.two, clip(2 * (1 - place.diagonal), 0, 1));
  const double corner = norms.in.p() < norms.out.p() ? known.variance : known.cut;
  return between_up(diagonal, corner, place.corner_weight);
}

}  // namespace lipscope

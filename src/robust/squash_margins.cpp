// SPDX-License-Identifier: Apache-2.0
#include "robust/squash_margins.h"

#include <algorithm>

namespace lipscope {

SquashMargins::SquashMargins(const Machine& machine, SquashKind squash, std::size_t classes)
    : machine_(machine),
      kind_(squash),
      ulps_(2 * kLibraryUlps * machine.values().unit),
      small_(mul_up(2 * kLibraryUlps, machine.lost(machine.values()))),
      sum_(add_up(1, add_up(ulps_, small_))) {
  const double unit = std::max(machine.values().unit, machine.sums().unit);
  sum_ = mul_up(sum_, static_cast<double>(classes));
  for (std::size_t k = 0; k < classes; ++k) sum_ = mul_up(sum_, add_up(1, unit));
  if (!(sum_ <= std::min(machine.values().most, machine.sums().most))) sum_ = kInf;
}

double SquashMargins::needed(const Interval& winner, const Interval& rival, double largest) const {
  if (!(largest < kInf)) return kInf;
  const auto enough = [&](double m) { return suffices(m, winner, rival, largest); };
  double high = machine_.values().unit;
  while (!enough(high)) {
    high *= 2;
    if (high > 4 * largest) return kInf;  // no margin is larger than twice a logit
  }
  double low = high / 2;
  for (int step = 0; step < 6; ++step) {
    const double middle = 0.5 * (low + high);
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

bool SquashMargins::suffices(double margin, const Interval& winner, const Interval& rival,
                             double largest) const {
  switch (kind_) {
    case SquashKind::kSoftmax: return softmax_tells(margin);
    case SquashKind::kLogSoftmax: return log_softmax_tells(margin, largest);
    case SquashKind::kSigmoid: return sigmoid_tells(margin, winner, rival);
  }
  return false;
}

double SquashMargins::kept(double margin) const {
  const NumberFormat& format = machine_.values();
  const double rounded = mul_down(margin, sub_down(1, format.unit));
  return machine_.flush() ? sub_down(rounded, format.normal) : rounded;
}

bool SquashMargins::softmax_tells(double margin) const {
  const double unit = machine_.values().unit, lost = machine_.lost(machine_.values());
  const double left = kept(margin);
  if (!(left > 0) || !(sum_ < kInf)) return false;
  // Exponentials of 0 and of -left or less, then times 1/S, the same for both.
  const double first = sub_down(sub_down(1, ulps_), small_);
  const double other = add_up(mul_up(exp(point(-left)).hi, add_up(1, ulps_)), small_);
  const double apart = sub_down(mul_down(first, sub_down(1, unit)), mul_up(other, add_up(1, unit)));
  const double share = sub_down(div_down(sub_down(1, 4 * unit), sum_), lost);
  return apart > 0 && share > 0 && mul_down(apart, share) > 2 * lost;
}

bool SquashMargins::log_softmax_tells(double margin, double largest) const {
  const double unit = machine_.values().unit, lost = machine_.lost(machine_.values());
  if (!(sum_ < kInf)) return false;
  const double log_sum = add_up(mul_up(log(point(sum_)).hi, add_up(1, ulps_)), small_);
  // z - (largest + log sum): the winner's result is about -log sum, its rival's margin below.
  const double subtracted = mul_up(unit, add_up(largest, log_sum));
  const double size = add_up(add_up(log_sum, subtracted), add_up(margin, lost));
  return kept(margin) > add_up(mul_up(4 * unit, size), 4 * lost);
}

bool SquashMargins::sigmoid_tells(double margin, const Interval& winner,
                                  const Interval& rival) const {
  const double absolute = add_up(small_, kApproximation);
  // The difference grows, then falls, with the rival's logit: its ends decide [robustness-10].
  const double top = std::min(rival.hi, sub_up(winner.hi, margin));
  for (const double z : {rival.lo, std::max(rival.lo, top)}) {
    const double first = mul_down(sigmoid(point(add_down(z, margin))).lo, sub_down(1, ulps_));
    const double other = mul_up(sigmoid(point(z)).hi, add_up(1, ulps_));
    if (!(sub_down(first, other) > mul_up(2, absolute))) return false;
  }
  return true;
}

}  // namespace lipscope

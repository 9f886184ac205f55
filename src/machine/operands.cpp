// SPDX-License-Identifier: Apache-2.0
#include "machine/operands.h"

#include <algorithm>

namespace lipscope {

Operands::Operands(const Machine& machine, const ComputedView& view)
    : view_(view), error_(view.error) {
  size_.reserve(view.size());
  for (std::size_t i = 0; i < view.size(); ++i) {
    size_.push_back(magnitude(view.real(i)));
    finite_ = finite_ && size_.back() < kInf && view.error[i] < kInf;
  }
  if (!finite_ || machine.sums().holds(machine.values())) return;
  const EitherFormat either(machine);
  for (std::size_t i = 0; i < view.size(); ++i) {
    converted_.push_back(either.converted(view.at(i)).error);
    finite_ = finite_ && converted_.back() < kInf;
  }
  error_ = converted_;
}

EitherFormat::EitherFormat(const Machine& machine)
    : unit_(std::max(machine.values().unit, machine.sums().unit)),
      lost_(std::max(machine.lost(machine.values()), machine.lost(machine.sums()))),
      most_(std::min(machine.values().most, machine.sums().most)),
      exact_(machine.sums().holds(machine.values())) {}

Computed EitherFormat::converted(const Computed& x) const {
  if (exact_ || x.size() == 0) return x;
  if (!(x.size() <= most_)) return unknown(x.real);
  return {x.real, add_up(x.error, add_up(mul_up(unit_, x.size()), lost_))};
}

Computed EitherFormat::product(const Computed& a, const Computed& b) const {
  const Interval real = a.real * b.real;
  if (!(a.error < kInf) || !(b.error < kInf)) return unknown(real);
  const double moved = add_up(mul_up(magnitude(a.real), b.error), mul_up(a.error, b.size()));
  const double size = add_up(magnitude(real), moved);
  if (!(size <= most_)) return unknown(real);
  if (size == 0) return {real, 0};
  const double once = add_up(mul_up(unit_, size), lost_);
  return {real, add_up(moved, mul_up(3, once))};  // rounded in either format, or in both
}

}  // namespace lipscope

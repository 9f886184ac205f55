// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"

namespace lipscope {
namespace {

struct Tanh {
  static constexpr std::string_view kName = "Tanh";
  template <class T>
  T value(T x) const {
    return std::tanh(x);
  }
  double slope(double x) const {
    const double t = std::tanh(x);
    return (1 - t) * (1 + t);
  }
  WideDual wide(const WideDual& x) const {
    const Wide t = tanh(x.value);
    return chained(t, Wide(1) - sqr(t), x);
  }
  Interval range(const Interval& x) const { return tanh(x); }
  Interval slopes(const Interval& x) const { return 1 / sqr(cosh(x)); }
  Computed computed(const Machine& machine, const Computed& x) const {
    return machine.library(range(x.real), 0, kApproximation);
  }
};

}  // namespace

std::vector<OpKind> op_tanh() {
  return {unary_kind<Tanh>([](Rng& rng) { return unary_cases(rng); })};
}

}  // namespace lipscope

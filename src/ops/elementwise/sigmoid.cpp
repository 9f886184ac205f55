// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/stable.h"
#include "ops/elementwise/unary.h"

namespace lipscope {
namespace {

struct Sigmoid {
  static constexpr std::string_view kName = "Sigmoid";
  template <class T>
  T value(T x) const {
    return sigmoid(x);
  }
  double slope(double x) const { return sigmoid_slope(x); }
  WideDual wide(const WideDual& x) const {
    const Wide s = sigmoid(x.value);
    return chained(s, s * (Wide(1) - s), x);
  }
  Interval range(const Interval& x) const { return sigmoid(x); }
  // [activations-4]: 1 / (4 cosh(x/2)^2).
  Interval slopes(const Interval& x) const { return 0.25 / sqr(cosh(0.5 * x)); }
  Computed computed(const Machine& machine, const Computed& x) const {
    return machine.library(range(x.real), 0, kApproximation);
  }
};

}  // namespace

std::vector<OpKind> op_sigmoid() {
  return {unary_kind<Sigmoid>([](Rng& rng) { return unary_cases(rng, {}, -6, 6); })};
}

}  // namespace lipscope

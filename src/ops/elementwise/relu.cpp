// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"

namespace lipscope {
namespace {

struct Relu {
  static constexpr std::string_view kName = "Relu";
  template <class T>
  T value(T x) const {
    return x < 0 ? T(0) : x;  // keeps NaN
  }
  double slope(double x) const { return x > 0 ? 1 : 0; }
  WideDual wide(const WideDual& x) const {
    const Interval at = hull(x.value);
    if (at.lo > 0) return x;
    if (at.hi < 0) return {};
    return chained(Wide::around(range(at)), Wide::around({0, 1}), x);
  }
  RationalInterval exact(const RationalInterval& x) const { return max(x, Rational()); }
  Interval range(const Interval& x) const { return max(x, point(0)); }
  Computed computed(const Machine&, const Computed& x) const { return {range(x.real), 0}; }
  Interval slopes(const Interval& x) const { return {x.lo > 0 ? 1.0 : 0.0, x.hi < 0 ? 0.0 : 1.0}; }
};

}  // namespace

std::vector<OpKind> op_relu() {
  return {unary_kind<Relu>([](Rng& rng) {
    return std::vector<OpCase>{{.inputs = {{random_tensor_avoiding(rng, {3, 4}, {0})}}}};
  })};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"

namespace lipscope {
namespace {

struct LeakyRelu {
  static constexpr std::string_view kName = "LeakyRelu";
  double alpha;
  template <class T>
  T value(T x) const {
    return x < 0 ? T(alpha) * x : x;
  }
  double slope(double x) const { return x < 0 ? alpha : 1; }
  Interval range(const Interval& x) const {
    const auto at = [&](double t) { return t < 0 ? point(alpha) * point(t) : point(t); };
    return over_pieces(x, at, {{point(0), point(0)}});
  }
  Interval slopes(const Interval& x) const {
    return hull_if(x.lo <= 0, point(alpha), x.hi >= 0, point(1));
  }
  Computed computed(const Machine& machine, const Computed& x) const {
    return Machine::branch(
        x, 0, [&](const Computed& below) { return machine.mul(machine.stored(alpha), below); },
        [](const Computed& from) { return from; });
  }
};

}  // namespace

std::vector<OpKind> op_leaky_relu() {
  return {{LeakyRelu::kName,
           [](const OnnxNode& node) { return import_unary(node, LeakyRelu{node.real("alpha")}); },
           [](Rng& rng) {
             return joined(unary_cases(rng, {0}), unary_cases(rng, {0}, -2, 2, {{"alpha", 0.2}}));
           }}};
}

}  // namespace lipscope

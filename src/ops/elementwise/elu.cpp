// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"

namespace lipscope {
namespace {

struct Elu {
  static constexpr std::string_view kName = "Elu";
  double alpha;
  template <class T>
  T value(T x) const {
    return x < 0 ? T(alpha) * std::expm1(x) : x;
  }
  double slope(double x) const { return x < 0 ? alpha * std::exp(x) : 1; }
  Interval range(const Interval& x) const {
    const auto at = [&](double t) { return t < 0 ? alpha * expm1(point(t)) : point(t); };
    return over_pieces(x, at, {{point(0), point(0)}});
  }
  Interval slopes(const Interval& x) const {
    return hull_if(x.lo <= 0, alpha * exp(min(x, point(0))), x.hi >= 0, point(1));
  }
  // By e^x - 1, or by one function for both.
  Computed computed(const Machine& machine, const Computed& x) const {
    return Machine::branch(
        x, 0,
        [&](const Computed& below) {
          const Computed power = machine.library(exp(below.real), 0);
          const Computed apart = machine.sub(power, {point(1), 0});
          const Computed together = machine.library(expm1(below.real), 0);
          return machine.mul(machine.stored(alpha),
                             {together.real, std::max(apart.error, together.error)});
        },
        [](const Computed& from) { return from; });
  }
};

}  // namespace

std::vector<OpKind> op_elu() {
  return {{Elu::kName,
           [](const OnnxNode& node) { return import_unary(node, Elu{node.real("alpha")}); },
           [](Rng& rng) {
             return joined(unary_cases(rng, {0}), unary_cases(rng, {0}, -2, 2, {{"alpha", 2.0}}));
           }}};
}

}  // namespace lipscope

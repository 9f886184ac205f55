// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"

namespace lipscope {
namespace {

struct Selu {
  static constexpr std::string_view kName = "Selu";
  double alpha, gamma;
  template <class T>
  T value(T x) const {
    return T(gamma) * (x < 0 ? T(alpha) * std::expm1(x) : x);
  }
  double slope(double x) const { return gamma * (x < 0 ? alpha * std::exp(x) : 1); }
  Interval range(const Interval& x) const {
    const auto at = [&](double t) { return t < 0 ? alpha * expm1(point(t)) : point(t); };
    return gamma * over_pieces(x, at, {{point(0), point(0)}});
  }
  Interval slopes(const Interval& x) const {
    return gamma * hull_if(x.lo <= 0, alpha * exp(min(x, point(0))), x.hi >= 0, point(1));
  }
};

Imported import_selu(const OnnxNode& node) {
  return import_unary(node, Selu{.alpha = node.real("alpha"), .gamma = node.real("gamma")});
}

}  // namespace

std::vector<OpKind> op_selu() {
  return {{Selu::kName, import_selu, [](Rng& rng) {
             return joined(unary_cases(rng, {0}),
                           unary_cases(rng, {0}, -2, 2, {{"alpha", 2.0}, {"gamma", 3.0}}));
           }}};
}

}  // namespace lipscope

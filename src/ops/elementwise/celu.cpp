// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"

namespace lipscope {
namespace {

struct Celu {
  static constexpr std::string_view kName = "Celu";
  double alpha;  // not 0
  template <class T>
  T value(T x) const {
    return x < 0 ? T(alpha) * std::expm1(x / T(alpha)) : x;
  }
  double slope(double x) const { return x < 0 ? std::exp(x / alpha) : 1; }
  Interval range(const Interval& x) const {
    return over_pieces(
        x, [&](double t) { return t < 0 ? alpha * expm1(point(t) / alpha) : point(t); });
  }
  Interval slopes(const Interval& x) const { return exp(min(x, point(0)) / alpha); }
};

double alpha_of(const OnnxNode& node) {
  const double alpha = node.real("alpha");
  if (!(alpha > 0)) node.unsupported("alpha has to be positive");
  return alpha;
}

}  // namespace

std::vector<OpKind> op_celu() {
  return {{Celu::kName,
           [](const OnnxNode& node) { return import_unary(node, Celu{alpha_of(node)}); },
           [](Rng& rng) {
             return joined(unary_cases(rng, {0}), unary_cases(rng, {0}, -2, 2, {{"alpha", 2.0}}));
           }}};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"
#include "ops/integer/integers.h"

namespace lipscope {
namespace {

struct Shrink {
  static constexpr std::string_view kName = "Shrink";
  double bias, lambda;
  template <class T>
  T value(T x) const {
    if (x < -T(lambda)) return x + T(bias);
    if (x > T(lambda)) return x - T(bias);
    return x != x ? x : T(0);
  }
  double slope(double x) const { return x < -lambda || x > lambda ? 1 : 0; }
  Interval range(const Interval& x) const {
    const double edge = std::abs(lambda);
    const bool right = lambda < 0 ? x.hi >= edge : x.hi > edge;
    const Interval steep =
        hull_if(x.lo < -lambda, min(x, point(-lambda)) + bias, right, max(x, point(edge)) - bias);
    const bool flat = lambda >= 0 && x.lo <= edge && x.hi >= -edge;
    return hull_if(!is_nan(steep), steep, flat, point(0));
  }
  // Jumps by lambda - bias at both ends of the flat part, by -2 bias where there is none
  // [activations-8].
  Interval slopes(const Interval& x) const {
    if (lambda < 0) {
      const bool whole = bias == 0 || x.hi < -lambda || x.lo >= -lambda;
      return whole ? point(1) : kEntire;
    }
    const bool steep = x.lo < -lambda || x.hi > lambda, flat = x.lo <= lambda && x.hi >= -lambda;
    if (bias == lambda) {
      return hull_if(x.lo <= -lambda || x.hi >= lambda, point(1), flat, point(0));
    }
    if (steep && flat) return bias < lambda ? Interval{0, kInf} : kEntire;
    return point(steep ? 1 : 0);
  }
  Index integer(ElementType type, Index x) const {
    return integer_from(type, value(integer_to_double(type, x)));
  }
};

Imported import_shrink(const OnnxNode& node) {
  return import_unary(node, Shrink{.bias = node.real("bias"), .lambda = node.real("lambd")});
}

}  // namespace

std::vector<OpKind> op_shrink() {
  return {{Shrink::kName, import_shrink, [](Rng& rng) {
             return joined(unary_cases(rng, {-0.5, 0.5}),
                           unary_cases(rng, {-1, 1}, -2, 2, {{"bias", 0.5}, {"lambd", 1.0}}));
           }}};
}

}  // namespace lipscope

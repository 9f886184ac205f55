// SPDX-License-Identifier: Apache-2.0
#include "ops/integers.h"
#include "ops/unary.h"

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
  Index integer(ElementType type, Index x) const {
    return integer_from(type, value(integer_to_double(type, x)));
  }
};

Imported import_shrink(const OnnxNode& node) {
  return import_unary(node,
                      Shrink{.bias = node.real("bias", 0.0), .lambda = node.real("lambd", 0.5)});
}

}  // namespace

std::vector<OpKind> op_shrink() {
  return {{Shrink::kName, import_shrink, [](Rng& rng) {
             return joined(unary_cases(rng, {-0.5, 0.5}),
                           unary_cases(rng, {-1, 1}, -2, 2, {{"bias", 0.5}, {"lambd", 1.0}}));
           }}};
}

}  // namespace lipscope

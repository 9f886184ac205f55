// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"

namespace lipscope {
namespace {

struct ThresholdedRelu {
  static constexpr std::string_view kName = "ThresholdedRelu";
  double alpha;
  template <class T>
  T value(T x) const {
    return x <= T(alpha) ? T(0) : x;  // keeps NaN
  }
  double slope(double x) const { return x > alpha ? 1 : 0; }
  Interval range(const Interval& x) const {
    return hull_if(x.lo <= alpha, point(0), x.hi > alpha, max(x, point(alpha)));
  }
  // A jump by alpha at alpha [activations-8].
  Interval slopes(const Interval& x) const {
    if (alpha == 0) return {x.lo > 0 ? 1.0 : 0.0, x.hi < 0 ? 0.0 : 1.0};
    if (x.lo > alpha) return point(1);
    if (x.hi <= alpha) return point(0);
    return alpha > 0 ? Interval{0, kInf} : kEntire;
  }
};

}  // namespace

std::vector<OpKind> op_thresholded_relu() {
  return {
      {ThresholdedRelu::kName,
       [](const OnnxNode& node) { return import_unary(node, ThresholdedRelu{node.real("alpha")}); },
       [](Rng& rng) {
         return joined(unary_cases(rng, {1}), unary_cases(rng, {0.5}, -2, 2, {{"alpha", 0.5}}));
       }}};
}

}  // namespace lipscope

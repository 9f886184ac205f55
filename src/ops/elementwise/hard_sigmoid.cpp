// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/elementwise/activations.h"
#include "ops/elementwise/unary.h"

namespace lipscope {
namespace {

struct HardSigmoid {
  static constexpr std::string_view kName = "HardSigmoid";
  double alpha, beta;
  template <class T>
  T value(T x) const {
    const T y = T(alpha) * x + T(beta);
    return y < 0 ? T(0) : y > 1 ? T(1) : y;
  }
  double slope(double x) const {
    const double y = alpha * x + beta;
    return y > 0 && y < 1 ? alpha : 0;
  }
  Interval range(const Interval& x) const { return min(max(alpha * x + beta, point(0)), point(1)); }
  Interval slopes(const Interval& x) const {
    const Interval y = alpha * x + beta;
    return hull_if(y.lo <= 1 && y.hi >= 0, point(alpha), y.lo <= 0 || y.hi >= 1, point(0));
  }
  std::optional<LinearPieces> linear_pieces() const {
    if (!(std::fabs(alpha) > 0)) return std::nullopt;
    const Interval slope = point(alpha), zero = -point(beta) / slope,
                   one = (point(1) - point(beta)) / slope;
    LinearPieces made{{zero, one}, {{0, point(0)}, {alpha, point(beta)}, {0, point(1)}}};
    if (alpha < 0) {
      std::ranges::reverse(made.kinks);
      std::ranges::reverse(made.pieces);
    }
    return made;
  }
  Computed computed(const Machine& machine, const Computed& x) const {
    const Computed line = machine.add(machine.mul(machine.stored(alpha), x), machine.stored(beta));
    return Machine::min(Machine::max(line, {point(0), 0}), {point(1), 0});
  }
};

Imported import_hard_sigmoid(const OnnxNode& node) {
  return import_unary(node, HardSigmoid{.alpha = node.real("alpha"), .beta = node.real("beta")});
}

}  // namespace

std::optional<HardSigmoidLine> as_hard_sigmoid(const Op& op) {
  const auto* found = dynamic_cast<const UnaryOp<HardSigmoid>*>(&op);
  if (found == nullptr) return std::nullopt;
  return HardSigmoidLine{found->function().alpha, found->function().beta};
}

std::vector<OpKind> op_hard_sigmoid() {
  return {{HardSigmoid::kName, import_hard_sigmoid, [](Rng& rng) {
             return joined(unary_cases(rng, {-2.5, 2.5}, -4, 4),
                           unary_cases(rng, {-1.2, 0.8}, -2, 2, {{"alpha", 0.5}, {"beta", 0.6}}));
           }}};
}

}  // namespace lipscope

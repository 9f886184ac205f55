// SPDX-License-Identifier: Apache-2.0
#include "ops/activations.h"
#include "ops/unary.h"

namespace lipscope {
namespace {

struct HardSwish {
  static constexpr std::string_view kName = "HardSwish";
  HardGate gate{1, 6, 0.5};
  template <class T>
  T value(T x) const {
    const T open = T(gate.multiply) * x / T(gate.divide) + T(gate.shift);
    return open < 0 ? T(0) : open > 1 ? x : x * open;
  }
  double slope(double x) const {
    const double line = gate.multiply / gate.divide;
    const double open = gate.multiply * x / gate.divide + gate.shift;
    return open < 0 ? 0 : open > 1 ? 1 : open + x * line;
  }
};

}  // namespace

std::shared_ptr<const Op> make_hard_swish(const HardGate& parameters) {
  return std::make_shared<UnaryOp<HardSwish>>(HardSwish{parameters});
}

std::vector<OpKind> op_hard_swish() {
  return {unary_kind<HardSwish>([](Rng& rng) { return unary_cases(rng, {-3, 3}, -5, 5); })};
}

}  // namespace lipscope

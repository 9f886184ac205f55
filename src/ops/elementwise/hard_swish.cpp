// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/activations.h"
#include "ops/elementwise/unary.h"

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
  // [activations-7]: the slope where the gate is y, 0 < y < 1, is 2y - shift.
  Interval range(const Interval& x) const {
    const Interval line = point(gate.multiply) / gate.divide;
    const auto at = [&](double t) { return t * clamp(line * t + gate.shift); };
    if (line == point(0)) return over_pieces(x, at);
    const Interval shut = -gate.shift / line, wide = (1 - point(gate.shift)) / line;
    const Turn closed{shut, point(0)}, open{wide, wide};
    if (!(gate.shift >= 0 && gate.shift <= 2)) return over_pieces(x, at, {closed, open});
    const Turn vertex{0.5 * shut, 0.25 * shut * gate.shift};
    return over_pieces(x, at, {closed, open, vertex});
  }
  Interval slopes(const Interval& x) const {
    const Interval open = point(gate.multiply) / gate.divide * x + gate.shift;
    const Interval inside = 2 * intersect(open, {0, 1}) - gate.shift;
    const Interval outside = hull_if(open.lo <= 0, point(0), open.hi >= 1, point(1));
    return hull_if(!is_nan(inside), inside, !is_nan(outside), outside);
  }

 private:
  static Interval clamp(const Interval& y) { return min(max(y, point(0)), point(1)); }
};

}  // namespace

std::shared_ptr<const Op> make_hard_swish(const HardGate& parameters) {
  return std::make_shared<UnaryOp<HardSwish>>(HardSwish{parameters});
}

std::vector<OpKind> op_hard_swish() {
  return {unary_kind<HardSwish>([](Rng& rng) { return unary_cases(rng, {-3, 3}, -5, 5); })};
}

}  // namespace lipscope

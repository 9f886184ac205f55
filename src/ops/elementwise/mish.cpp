// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/stable.h"
#include "ops/elementwise/unary.h"

namespace lipscope {
namespace {

// x tanh(softplus(x)).
struct Mish {
  static constexpr std::string_view kName = "Mish";
  template <class T>
  T value(T x) const {
    return x * gate(x);
  }
  double slope(double x) const {
    const double t = gate(x);
    return t + x * (1 - t) * (1 + t) * sigmoid(x);
  }
  // [activations-6].
  Interval range(const Interval& x) const {
    static const Interval least =
        sign_change(-2, 0, [](const Interval& t) { return 1 + t * at(t).growth / at(t).gate; });
    static const Interval bottom = least * at(least).gate;
    return over_pieces(x,
                       [](double t) {
                         if (std::isinf(t)) return t > 0 ? point(t) : point(0);
                         return t * at(point(t)).gate;
                       },
                       {{least, bottom}});
  }
  Interval slopes(const Interval& x) const {
    const auto bend = [](const Interval& t) { return 2 + t * at(t).bend; };
    const auto slope_on = [](const Interval& t) { return at(t).gate + t * at(t).growth; };
    static const Interval falls = sign_change(-4, 0, bend), rises = sign_change(4, 0, bend);
    static const Turn low{falls, slope_on(falls)}, high{rises, slope_on(rises)};
    return over_pieces(
        x, [&](double t) { return std::isinf(t) ? point(t > 0 ? 1 : 0) : slope_on(point(t)); },
        {low, high});
  }

 private:
  // With e = exp(x): g = tanh(softplus(x)), g' and g'' / g', scaled by powers of e so that nothing
  // overflows. x does not hold 0 inside.
  struct Local {
    Interval gate, growth, bend;
  };
  static Local at(const Interval& x) {
    const Interval e = exp(-abs(x));
    if (x.hi <= 0) {
      const Interval above = e * (e + 2), below = above + 2;
      return {above / below, 4 * e * (1 + e) / sqr(below),
              (2 + 2 * e - 3 * sqr(e) - 2 * pow(e, 3)) / ((1 + e) * below)};
    }
    const Interval above = 1 + 2 * e, below = above + 2 * sqr(e);
    return {above / below, 4 * sqr(e) * (1 + e) / sqr(below),
            (2 * pow(e, 3) + 2 * sqr(e) - 3 * e - 2) / ((1 + e) * below)};
  }
  // tanh(log(1 + e)) = (e^2 + 2e) / (e^2 + 2e + 2), e = exp(x), scaled so that nothing overflows.
  template <class T>
  static T gate(T x) {
    const T e = std::exp(-std::abs(x));
    const T above = x < 0 ? e * (e + 2) : 1 + 2 * e;
    return above / (above + 2 * (x < 0 ? T(1) : e * e));
  }
};

}  // namespace

std::vector<OpKind> op_mish() {
  return {unary_kind<Mish>(
      [](Rng& rng) { return joined(unary_cases(rng), unary_cases(rng, {}, -100, 100)); })};
}

}  // namespace lipscope

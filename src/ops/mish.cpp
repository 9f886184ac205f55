// SPDX-License-Identifier: Apache-2.0
#include "ops/stable.h"
#include "ops/unary.h"

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

 private:
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

// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"

namespace lipscope {
namespace {

struct Softsign {
  static constexpr std::string_view kName = "Softsign";
  template <class T>
  T value(T x) const {
    return x / (1 + std::abs(x));
  }
  double slope(double x) const {
    const double d = 1 + std::abs(x);
    return 1 / (d * d);
  }
  Interval range(const Interval& x) const {
    return over_pieces(x, [](double t) {
      return std::isinf(t) ? point(t > 0 ? 1 : -1) : t / (1 + point(std::abs(t)));
    });
  }
  Interval slopes(const Interval& x) const { return 1 / sqr(1 + abs(x)); }
};

}  // namespace

std::vector<OpKind> op_softsign() {
  return {unary_kind<Softsign>([](Rng& rng) { return unary_cases(rng, {0}); })};
}

}  // namespace lipscope

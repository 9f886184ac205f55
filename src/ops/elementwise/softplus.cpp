// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/stable.h"
#include "ops/elementwise/unary.h"

namespace lipscope {
namespace {

struct Softplus {
  static constexpr std::string_view kName = "Softplus";
  template <class T>
  T value(T x) const {
    return softplus(x);
  }
  double slope(double x) const { return sigmoid(x); }
  Interval range(const Interval& x) const { return softplus(x); }
  Interval slopes(const Interval& x) const { return sigmoid(x); }
};

}  // namespace

std::vector<OpKind> op_softplus() {
  return {unary_kind<Softplus>(
      [](Rng& rng) { return joined(unary_cases(rng), unary_cases(rng, {}, 80, 100)); })};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"
#include "ops/integer/integers.h"

namespace lipscope {
namespace {

// Slopes of a step function that never falls [activations-8].
Interval step_slopes(const Interval& range) { return {0, range.lo == range.hi ? 0 : kInf}; }

// Locally constant functions: the derivative is zero wherever there is one.
struct Sign {
  static constexpr std::string_view kName = "Sign";
  template <class T>
  T value(T x) const {
    return x > 0 ? T(1) : x < 0 ? T(-1) : x;
  }
  Index integer(ElementType type, Index x) const {
    return x == 0 ? 0 : integer_less(type, 0, x) ? 1 : -1;
  }
  double slope(double) const { return 0; }
  RationalInterval exact(const RationalInterval& x) const {
    return never_falling(x, [](const Rational& e) { return Rational(BigInteger(e.sign())); });
  }
  Interval range(const Interval& x) const { return {value(x.lo), value(x.hi)}; }
  Interval slopes(const Interval& x) const { return step_slopes(range(x)); }
};

struct Floor {
  static constexpr std::string_view kName = "Floor";
  template <class T>
  T value(T x) const {
    return std::floor(x);
  }
  double slope(double) const { return 0; }
  RationalInterval exact(const RationalInterval& x) const {
    return never_falling(x, [](const Rational& e) { return Rational(e.floor()); });
  }
  Interval range(const Interval& x) const { return {value(x.lo), value(x.hi)}; }
  Interval slopes(const Interval& x) const { return step_slopes(range(x)); }
};

struct Ceil {
  static constexpr std::string_view kName = "Ceil";
  template <class T>
  T value(T x) const {
    return std::ceil(x);
  }
  double slope(double) const { return 0; }
  RationalInterval exact(const RationalInterval& x) const {
    return never_falling(x, [](const Rational& e) { return Rational(ceil(e)); });
  }
  Interval range(const Interval& x) const { return {value(x.lo), value(x.hi)}; }
  Interval slopes(const Interval& x) const { return step_slopes(range(x)); }
};

struct Round {
  static constexpr std::string_view kName = "Round";
  template <class T>
  T value(T x) const {
    return std::nearbyint(x);  // ties to even
  }
  double slope(double) const { return 0; }
  RationalInterval exact(const RationalInterval& x) const {
    return never_falling(x, [](const Rational& e) { return Rational(nearest_even(e)); });
  }
  Interval range(const Interval& x) const { return {value(x.lo), value(x.hi)}; }
  Interval slopes(const Interval& x) const { return step_slopes(range(x)); }
};

OpCase unsigned_case() {
  return {.inputs = {{Tensor(ElementType::kUInt64, {3}, std::vector<Index>{-1, 0, 5})}}};
}

}  // namespace

std::vector<OpKind> op_steps() {
  return {
      unary_kind<Sign>([](Rng& rng) { return joined(unary_cases(rng, {0}), {unsigned_case()}); }),
      unary_kind<Floor>([](Rng& rng) {
        return unary_cases(rng, {-1, 0, 1}, -1.9, 1.9);
      }),
      unary_kind<Ceil>([](Rng& rng) {
        return unary_cases(rng, {-1, 0, 1}, -1.9, 1.9);
      }),
      unary_kind<Round>([](Rng& rng) {
        return unary_cases(rng, {-1.5, -0.5, 0.5, 1.5});
      })};
}

}  // namespace lipscope

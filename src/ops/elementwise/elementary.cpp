// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ops/elementwise/unary.h"
#include "ops/integer/integers.h"

namespace lipscope {
namespace {

struct Neg {
  static constexpr std::string_view kName = "Neg";
  template <class T>
  T value(T x) const {
    return -x;
  }
  Index integer(ElementType, Index x) const { return subtract_integers(0, x); }
  double slope(double) const { return -1; }
  WideDual wide(const WideDual& x) const { return -x; }
  RationalInterval exact(const RationalInterval& x) const { return -x; }
  Interval range(const Interval& x) const { return -x; }
  Computed computed(const Machine&, const Computed& x) const { return {-x.real, 0}; }
  Interval slopes(const Interval&) const { return point(-1); }
};

struct Abs {
  static constexpr std::string_view kName = "Abs";
  template <class T>
  T value(T x) const {
    return std::abs(x);
  }
  Index integer(ElementType type, Index x) const {
    return is_unsigned(type) || x >= 0 ? x : subtract_integers(0, x);
  }
  double slope(double x) const { return x < 0 ? -1 : 1; }
  RationalInterval exact(const RationalInterval& x) const { return abs(x); }
  Interval range(const Interval& x) const { return abs(x); }
  Computed computed(const Machine&, const Computed& x) const { return {abs(x.real), 0}; }
  Interval slopes(const Interval& x) const {
    return hull_if(x.lo <= 0, point(-1), x.hi >= 0, point(1));
  }
};

struct Sqrt {
  static constexpr std::string_view kName = "Sqrt";
  template <class T>
  T value(T x) const {
    return std::sqrt(x);
  }
  double slope(double x) const { return 0.5 / std::sqrt(x); }
  WideDual wide(const WideDual& x) const {
    const Wide inverse = inverse_sqrt(x.value);
    return chained(x.value * inverse, scaled(inverse, -1), x);
  }
  Interval range(const Interval& x) const { return sqrt(x); }
  Computed computed(const Machine& machine, const Computed& x) const { return machine.sqrt(x); }
  Interval slopes(const Interval& x) const { return 0.5 / sqrt(x); }
};

struct Reciprocal {
  static constexpr std::string_view kName = "Reciprocal";
  template <class T>
  T value(T x) const {
    return T(1) / x;
  }
  double slope(double x) const { return -1 / (x * x); }
  WideDual wide(const WideDual& x) const { return WideDual{Wide(1), Wide()} / x; }
  RationalInterval exact(const RationalInterval& x) const { return RationalInterval(1.0) / x; }
  Interval range(const Interval& x) const { return 1 / x; }
  Computed computed(const Machine& machine, const Computed& x) const {
    return machine.div({point(1), 0}, x);
  }
  Interval slopes(const Interval& x) const { return x.lo < 0 && x.hi > 0 ? kEntire : -1 / sqr(x); }
};

struct Exp {
  static constexpr std::string_view kName = "Exp";
  template <class T>
  T value(T x) const {
    return std::exp(x);
  }
  double slope(double x) const { return std::exp(x); }
  WideDual wide(const WideDual& x) const {
    const Wide y = exp(x.value);
    return chained(y, y, x);
  }
  Interval range(const Interval& x) const { return exp(x); }
  Interval slopes(const Interval& x) const { return exp(x); }
};

struct Log {
  static constexpr std::string_view kName = "Log";
  template <class T>
  T value(T x) const {
    return std::log(x);
  }
  double slope(double x) const { return 1 / x; }
  Interval range(const Interval& x) const { return log(x); }
  Interval slopes(const Interval& x) const { return 1 / intersect(x, {0, kInf}); }
};

struct Erf {
  static constexpr std::string_view kName = "Erf";
  template <class T>
  T value(T x) const {
    return std::erf(x);
  }
  double slope(double x) const { return 2 * std::numbers::inv_sqrtpi * std::exp(-x * x); }
  // 2 (share below sqrt(2) x) - 1.
  WideDual wide(const WideDual& x) const {
    const Wide root = sqrt(Wide(2));
    const NormalShare normal = normal_share(root * x.value);
    return chained(scaled(normal.below, 1) - Wide(1), scaled(root * normal.density, 1), x);
  }
  Interval range(const Interval& x) const { return erf(x); }
  Interval slopes(const Interval& x) const {
    return 2 / sqrt(Interval{kPiDown, kPiUp}) * exp(-sqr(x));
  }
};

// An int8 tensor with the entry that has no negative.
OpCase integer_case() {
  return {.inputs = {{Tensor(ElementType::kInt8, {3}, std::vector<Index>{-128, 0, 5})}}};
}

}  // namespace

std::vector<OpKind> op_elementary() {
  return {unary_kind<Neg>([](Rng& rng) { return joined(unary_cases(rng), {integer_case()}); }),
          unary_kind<Abs>([](Rng& rng) { return joined(unary_cases(rng, {0}), {integer_case()}); }),
          unary_kind<Sqrt>([](Rng& rng) { return unary_cases(rng, {}, 0.1, 4); }),
          unary_kind<Reciprocal>([](Rng& rng) { return unary_cases(rng, {}, 0.3, 2); }),
          unary_kind<Exp>([](Rng& rng) { return unary_cases(rng); }),
          unary_kind<Log>([](Rng& rng) { return unary_cases(rng, {}, 0.3, 4); }),
          unary_kind<Erf>([](Rng& rng) { return unary_cases(rng); })};
}

}  // namespace lipscope

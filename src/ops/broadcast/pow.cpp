// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/broadcast/binary.h"

namespace lipscope {
namespace {

struct Pow {
  static constexpr std::string_view kName = "Pow";
  static constexpr bool kMixed = true;
  template <class T>
  T value(T a, T b) const {
    if (b == 2) return a * a;
    if (b == 3) return a * a * a;
    return std::pow(a, b);
  }
  double slope_a(double a, double b) const { return b == 0 ? 0 : b * value(a, b - 1); }
  double slope_b(double a, double b) const {
    return a == 0 && b > 0 ? 0 : std::pow(a, b) * std::log(a);
  }
  Index integer(ElementType type, Index a, Index b) const {
    if (b < 0 && !is_unsigned(type)) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    Index result = 1;
    for (std::uint64_t rest = bits_of(b); rest != 0; rest >>= 1) {
      if ((rest & 1) != 0) result = multiply_integers(result, a);
      a = multiply_integers(a, a);
    }
    return result;
  }
  // Whole powers are defined everywhere, others for a >= 0; elsewhere nothing is said.
  Interval range(const Interval& a, const Interval& b) const {
    if (whole(b)) return lipscope::pow(a, static_cast<int>(b.lo));
    return a.lo >= 0 ? lipscope::pow(a, b) : kEntire;
  }
  // Whole powers of numbers that can still be written down.
  RationalInterval exact(const RationalInterval& a, const RationalInterval& b) const {
    const Rational* exponent = b.number();
    const Interval n = b.hull();
    if (exponent == nullptr || !exponent->is_integer() || magnitude(n) > 64)
      return RationalInterval(range(a.hull(), n));
    RationalInterval power(1.0);
    // An even power of an interval is not the product of its factors.
    const RationalInterval base = std::fmod(n.lo, 2) == 0 ? abs(a) : a;
    for (double i = std::fabs(n.lo); i > 0; --i) power = power * base;
    return n.lo < 0 ? RationalInterval(1.0) / power : power;
  }
  double reach_a(const Interval& a, const Interval& b) const {
    if (b.lo == 0 && b.hi == 0) return 0;
    if (whole(b)) {
      const double n = b.lo, size = n > 0 ? magnitude(a) : mignitude(a);
      return gain_mul_up(std::abs(n), size == 0 && n < 0 ? kInf : pow_up(size, n - 1));
    }
    if (a.lo < 0) return kInf;
    return gain_mul_up(magnitude(b), lipscope::pow(a, b - 1).hi);
  }
  double reach_b(const Interval& a, const Interval& b) const {
    if (a.lo > 0) return gain_mul_up(lipscope::pow(a, b).hi, magnitude(lipscope::log(a)));
    if (a.lo < 0 || b.lo <= 0) return kInf;
    // a^b |log a| is at most 1 / (e b) for a <= 1; 0^b is constant for b > 0.
    const double below = div_up(1, mul_down(exp_down(1), b.lo));
    if (a.hi <= 1) return below;
    return max_nan(below, mul_up(pow_up(a.hi, b.hi), log_up(a.hi)));
  }
  // The square, between its tangent and its chord; of other powers nothing is said.
  PairPlane plane(const Interval& a, const Interval& b) const {
    if (!(b.lo == 2 && b.hi == 2)) return {.offset = kEntire};
    const double m = midpoint(a), r = radius_up(a);
    return {.weight_a = 2 * m, .offset = Interval{0, mul_up(r, r)} - sqr(point(m))};
  }
  static bool whole(const Interval& b) {
    return b.lo == b.hi && std::abs(b.lo) < 0x1p30 && std::trunc(b.lo) == b.lo;
  }
};

Imported import_pow(const OnnxNode& node) {
  if (node.input(0).type == ElementType::kBool || node.input(1).type == ElementType::kBool) {
    node.malformed("bool operand");
  }
  return import_binary<Pow>(node);
}

std::vector<OpCase> pow_cases(Rng& rng) {
  auto cases = binary_cases(rng, 0.5, 2);
  const auto whole = [](ElementType type) {
    return Tensor(type, {3}, std::vector<Index>{2, 3, 1});
  };
  const auto x = [&] { return random_tensor(rng, {2, 3}); };
  cases.push_back({.inputs = {{x()}, {Tensor::vector({2}).cast(ElementType::kFloat32), true}}});
  cases.push_back({.inputs = {{x()}, {Tensor::vector({0, 1, 3}), true}}});
  cases.push_back({.inputs = {{x()}, {whole(ElementType::kInt64), true}}});
  cases.push_back({.inputs = {{x()}, {whole(ElementType::kInt32)}}});
  cases.push_back(
      {.inputs = {{whole(ElementType::kInt32)}, {random_tensor(rng, {3}, 1.1, 1.4), true}}});
  cases.push_back({.inputs = {{whole(ElementType::kInt8)}, {whole(ElementType::kInt64)}}});
  return cases;
}

}  // namespace

std::vector<OpKind> op_pow() { return {{Pow::kName, import_pow, pow_cases}}; }

}  // namespace lipscope

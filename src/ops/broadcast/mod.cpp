// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/broadcast/binary.h"

namespace lipscope {
namespace {

// The remainder with the sign of the dividend.
struct Mod {
  static constexpr std::string_view kName = "Mod";
  template <class T>
  T value(T a, T b) const {
    return std::fmod(a, b);
  }
  double slope_a(double, double) const { return 1; }
  double slope_b(double a, double b) const { return -std::trunc(a / b); }
  Index integer(ElementType type, Index a, Index b) const { return remainder_integers(type, a, b); }
  Interval range(const Interval& a, const Interval& b) const {
    if (contains(b, 0)) return kEntire;
    if (a.lo == a.hi && b.lo == b.hi) return point(std::fmod(a.lo, b.lo));  // exact
    const double size = min_nan(magnitude(a), magnitude(b));
    const Interval any{a.lo < 0 ? -size : 0, a.hi > 0 ? size : 0};
    const Interval quotient = whole_quotient(a, b);
    return is_nan(quotient) ? any : intersect(any, a - quotient * b);
  }
  // a - b trunc(a / b), where the quotient is cut to the same integer for all operands.
  RationalInterval exact(const RationalInterval& a, const RationalInterval& b) const {
    const RationalInterval quotient =
        never_falling(a / b, [](const Rational& q) { return Rational(trunc(q)); });
    if (quotient.number() == nullptr) return RationalInterval(range(a.hull(), b.hull()));
    return a - quotient * b;
  }
  double reach_a(const Interval& a, const Interval& b) const {
    return is_nan(whole_quotient(a, b)) ? kInf : 1;
  }
  double reach_b(const Interval& a, const Interval& b) const {
    const Interval quotient = whole_quotient(a, b);
    return is_nan(quotient) ? kInf : magnitude(quotient);
  }
  // trunc(a / b) where it is the same for all operands; NaN otherwise.
  static Interval whole_quotient(const Interval& a, const Interval& b) {
    if (contains(b, 0)) return kNoInterval;
    const Interval q = a / b;
    const double from = std::trunc(q.lo), to = std::trunc(q.hi);
    return from == to && std::isfinite(from) ? point(from) : kNoInterval;
  }
};

// The remainder with the sign of the divisor.
struct FloorMod {
  static constexpr std::string_view kName = "Mod";
  Index integer(ElementType type, Index a, Index b) const {
    const Index r = remainder_integers(type, a, b);
    const bool opposite = !is_unsigned(type) && r != 0 && (r < 0) != (b < 0);
    return opposite ? r + b : r;
  }
};

Imported import_mod(const OnnxNode& node) {
  if (node.input(0).type == ElementType::kBool) node.malformed("bool operand");
  if (node.integer("fmod", 0) != 0) return import_binary<Mod>(node);
  if (is_floating(node.input(0).type)) node.malformed("floating operands need fmod=1");
  return import_binary<FloorMod>(node);
}

std::vector<OpCase> mod_cases(Rng& rng) {
  const Attributes fmod = {{"fmod", Index{1}}};
  // Quotients in (1.25, 1.8) or (-1.8, -1.25): away from the jumps.
  std::vector<OpCase> cases = {
      {.inputs = {{random_tensor(rng, {2, 3}, 2.5, 2.7)}, {random_tensor(rng, {3}, 1.5, 2)}},
       .attributes = fmod},
      {.inputs = {{random_tensor(rng, {2, 3}, -2.7, -2.5)}, {random_tensor(rng, {}, 1.5, 2), true}},
       .attributes = fmod}};
  for (const Attributes& attributes : {Attributes{}, fmod}) {
    cases.push_back(
        {.inputs = {{Tensor::integers({4}, {-7, 7, -8, 8})}, {Tensor::integers({2, 1}, {3, -3})}},
         .attributes = attributes});
    cases.push_back(integer_operands(ElementType::kUInt64));
    cases.back().attributes = attributes;
  }
  return cases;
}

}  // namespace

std::vector<OpKind> op_mod() { return {{Mod::kName, import_mod, mod_cases}}; }

}  // namespace lipscope

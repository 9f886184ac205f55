// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/elementwise/activations.h"
#include "ops/elementwise/unary.h"
#include "ops/integer/integers.h"

namespace lipscope {
namespace {

// min(max(x, lower), upper): upper wins where the bounds are the wrong way round.
struct Clip {
  static constexpr std::string_view kName = "Clip";
  double lower, upper;
  Index integer_lower, integer_upper;  // the same for integer types
  bool stored;                         // the bounds are numbers of the file
  template <class T>
  T value(T x) const {
    const T raised = x < T(lower) ? T(lower) : x;  // keeps NaN
    return raised > T(upper) ? T(upper) : raised;
  }
  double slope(double x) const { return x > lower && x < upper ? 1 : 0; }
  Interval range(const Interval& x) const { return min(max(x, point(lower)), point(upper)); }
  RationalInterval exact(const RationalInterval& x) const {
    const RationalInterval raised = std::isfinite(lower) ? max(x, RationalInterval(lower)) : x;
    return std::isfinite(upper) ? min(raised, RationalInterval(upper)) : raised;
  }
  Interval slopes(const Interval& x) const {
    if (lower >= upper) return point(0);
    const bool cut = (lower > -kInf && x.lo <= lower) || (upper < kInf && x.hi >= upper);
    return hull_if(x.lo <= upper && x.hi >= lower, point(1), cut, point(0));
  }
  // A bound that no number of the format reaches does nothing, rounded or not.
  std::optional<LinearPieces> linear_pieces() const {
    if (!(lower < upper)) return std::nullopt;
    LinearPieces made{{}, {{1, point(0)}}};
    if (lower > -kInf) {
      made.kinks.push_back(point(lower));
      made.pieces.insert(made.pieces.begin(), {0, point(lower)});
    }
    if (upper < kInf) {
      made.kinks.push_back(point(upper));
      made.pieces.push_back({0, point(upper)});
    }
    return made;
  }
  Computed computed(const Machine& machine, const Computed& x) const {
    if (!stored) return unknown(range(x.real));
    const double most = machine.values().most;
    Computed y = x;
    if (!(lower < -most)) y = Machine::max(y, machine.stored(lower));
    if (!(upper > most)) y = Machine::min(y, machine.stored(upper));
    return y;
  }
  Index integer(ElementType type, Index x) const {
    const Index raised = integer_less(type, x, integer_lower) ? integer_lower : x;
    return integer_less(type, integer_upper, raised) ? integer_upper : raised;
  }
};

// The bound at input k, absent or a constant of one entry.
const Tensor* bound_at(const OnnxNode& node, Index k) {
  if (!node.has_input(k)) return nullptr;
  const Tensor& bound = node.constant(k);
  if (bound.size() != 1) node.malformed("a bound has to be a single number");
  if (bound.type() != node.input(0).type) node.malformed("a bound has another element type");
  return &bound;
}

Imported import_clip(const OnnxNode& node) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const ElementType type = node.input(0).type;
  Clip clip{.lower = -kInfinity,
            .upper = kInfinity,
            .integer_lower = smallest_integer(type),
            .integer_upper = largest_integer(type),
            .stored = node.opset() < 11 || (node.is_stored(1) && node.is_stored(2))};
  if (node.opset() < 11) {
    require_real(node);
    clip.lower = node.optional_real("min").value_or(clip.lower);
    clip.upper = node.optional_real("max").value_or(clip.upper);
  } else {
    const Tensor* lower = bound_at(node, 1);
    const Tensor* upper = bound_at(node, 2);
    if (lower != nullptr) clip.lower = lower->at(0);
    if (upper != nullptr) clip.upper = upper->at(0);
    if (!is_floating(type)) {
      if (lower != nullptr) clip.integer_lower = lower->ints()[0];
      if (upper != nullptr) clip.integer_upper = upper->ints()[0];
    }
  }
  if (std::isnan(clip.lower) || std::isnan(clip.upper)) node.unsupported("a bound is NaN");
  return import_unary(node, clip);
}

OpCase bounded_case(Tensor x, double lower, double upper) {
  const auto bound = [&](double value) {
    return Tensor(ElementType::kFloat32, {}, std::vector<double>{value}).cast(x.type());
  };
  return {.inputs = {{x}, {bound(lower), true}, {bound(upper), true}}};
}

std::vector<OpCase> clip_cases(Rng& rng) {
  auto cases = unary_cases(rng, {-1, 0.5}, -2, 2, {{"min", -1.0}, {"max", 0.5}}, 6);
  for (OpCase& free : unary_cases(rng)) cases.push_back(std::move(free));
  cases.push_back(bounded_case(random_tensor_avoiding(rng, {2, 5}, {-1, 1}), -1, 1));
  cases.push_back(bounded_case(random_tensor(rng, {4}), 1, -1));
  cases.push_back(
      bounded_case(Tensor(ElementType::kUInt64, {3}, std::vector<Index>{-1, 0, 5}), 1, 7));
  return cases;
}

}  // namespace

std::optional<ClipBounds> as_clip(const Op& op) {
  const auto* clip = dynamic_cast<const UnaryOp<Clip>*>(&op);
  if (clip == nullptr) return std::nullopt;
  return ClipBounds{clip->function().lower, clip->function().upper};
}

std::vector<OpKind> op_clip() { return {{Clip::kName, import_clip, clip_cases}}; }

}  // namespace lipscope

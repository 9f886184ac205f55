// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast/binary.h"

namespace lipscope {
namespace {

struct Add {
  static constexpr std::string_view kName = "Add";
  static constexpr bool kField = true;
  Computed computed(const Machine& machine, const Computed& a, const Computed& b) const {
    return machine.add(a, b);
  }
  template <class T>
  T value(T a, T b) const {
    return a + b;
  }
  double slope_a(double, double) const { return 1; }
  double slope_b(double, double) const { return 1; }
  Index integer(ElementType, Index a, Index b) const { return add_integers(a, b); }
  Interval range(const Interval& a, const Interval& b) const { return a + b; }
  double reach_a(const Interval&, const Interval&) const { return 1; }
  double reach_b(const Interval&, const Interval&) const { return 1; }
  Interval weight_a(const Interval&) const { return point(1); }
  Interval weight_b(const Interval&) const { return point(1); }
};

struct Sub {
  static constexpr std::string_view kName = "Sub";
  static constexpr bool kField = true;
  Computed computed(const Machine& machine, const Computed& a, const Computed& b) const {
    return machine.sub(a, b);
  }
  template <class T>
  T value(T a, T b) const {
    return a - b;
  }
  double slope_a(double, double) const { return 1; }
  double slope_b(double, double) const { return -1; }
  Index integer(ElementType, Index a, Index b) const { return subtract_integers(a, b); }
  Interval range(const Interval& a, const Interval& b) const { return a - b; }
  double reach_a(const Interval&, const Interval&) const { return 1; }
  double reach_b(const Interval&, const Interval&) const { return 1; }
  Interval weight_a(const Interval&) const { return point(1); }
  Interval weight_b(const Interval&) const { return point(-1); }
};

// g times the other operand, summed over what the result was broadcast along.
ValueId add_product_adjoint(GraphBuilder& builder, const ValueType& to, ValueId g, ValueId other) {
  const Shape full = builder.value(g).type.shape, shape = builder.value(other).type.shape;
  return add_products(builder,
                      {.name = "Mul",
                       .out = to,
                       .extents = full,
                       .strides = {broadcast_strides(full, full), broadcast_strides(full, shape)},
                       .out_strides = broadcast_strides(full, to.shape),
                       .terms = {{1, {0, 1}}}},
                      {g, other});
}

struct Mul {
  static constexpr std::string_view kName = "Mul";
  static constexpr bool kField = true;
  Computed computed(const Machine& machine, const Computed& a, const Computed& b) const {
    return machine.mul(a, b);
  }
  template <class T>
  T value(T a, T b) const {
    return a * b;
  }
  double slope_a(double, double b) const { return b; }
  double slope_b(double a, double) const { return a; }
  Index integer(ElementType, Index a, Index b) const { return multiply_integers(a, b); }
  Interval range(const Interval& a, const Interval& b) const { return a * b; }
  double reach_a(const Interval&, const Interval& b) const { return magnitude(b); }
  double reach_b(const Interval& a, const Interval&) const { return magnitude(a); }
  Interval weight_a(const Interval& b) const { return b; }
  Interval weight_b(const Interval& a) const { return a; }
  PairPlane plane(const Interval& a, const Interval& b) const { return product_plane(a, b); }
  static ValueId add_adjoint(const AdjointArgs& args) {
    return add_product_adjoint(args.builder, args.builder.value(args.inputs[args.wrt]).type,
                               args.gradient, args.inputs[1 - args.wrt]);
  }
};

struct Div {
  static constexpr std::string_view kName = "Div";
  static constexpr bool kField = true;
  Computed computed(const Machine& machine, const Computed& a, const Computed& b) const {
    return machine.div(a, b);
  }
  template <class T>
  T value(T a, T b) const {
    return a / b;
  }
  double slope_a(double, double b) const { return 1 / b; }
  double slope_b(double a, double b) const { return -a / (b * b); }
  Index integer(ElementType type, Index a, Index b) const { return divide_integers(type, a, b); }
  Interval range(const Interval& a, const Interval& b) const {
    return contains(b, 0) ? kEntire : a / b;
  }
  double reach_a(const Interval&, const Interval& b) const {
    return contains(b, 0) ? kInf : div_up(1, mignitude(b));
  }
  double reach_b(const Interval& a, const Interval& b) const {
    const double size = mignitude(b);
    return size == 0 ? kInf : div_up(div_up(magnitude(a), size), size);
  }
  Interval weight_a(const Interval& b) const { return contains(b, 0) ? kEntire : point(1) / b; }
  PairPlane plane(const Interval& a, const Interval& b) const {
    return contains(b, 0) ? PairPlane{.offset = kEntire} : quotient_plane(a, b);
  }
  // g / b, and -g y / b for y = a / b.
  static ValueId add_adjoint(const AdjointArgs& args) {
    GraphBuilder& builder = args.builder;
    const ValueType type = builder.value(args.inputs[1]).type;
    const OnnxNode node("Reciprocal", 13, {}, {NodeInput{type}});
    const ValueId inverse =
        builder.add(find_op_kind("Reciprocal")->import(node).op, {args.inputs[1]}, "gradient")[0];
    const ValueId g =
        args.wrt == 0 ? args.gradient : add_product(builder, args.gradient, args.output);
    const ValueType to = builder.value(args.inputs[args.wrt]).type;
    const ValueId found = add_product_adjoint(builder, to, g, inverse);
    if (args.wrt == 0) return found;
    return add_products(builder,
                        {.name = "Neg",
                         .out = to,
                         .extents = {element_count(to.shape)},
                         .strides = {{1}},
                         .out_strides = {1},
                         .terms = {{-1, {0}}}},
                        {found});
  }
};

// The float cases and one for a narrow, a signed and the widest unsigned type.
std::vector<OpCase> with_integers(std::vector<OpCase> cases) {
  for (const ElementType type : {ElementType::kInt8, ElementType::kInt32, ElementType::kUInt64}) {
    cases.push_back(integer_operands(type));
  }
  return cases;
}

}  // namespace

std::vector<OpKind> op_arithmetic() {
  return {binary_kind<Add>([](Rng& rng) { return with_integers(binary_cases(rng)); }),
          binary_kind<Sub>([](Rng& rng) { return with_integers(binary_cases(rng)); }),
          binary_kind<Mul>([](Rng& rng) { return with_integers(binary_cases(rng)); }),
          binary_kind<Div>([](Rng& rng) { return with_integers(binary_cases(rng, 0.5, 2)); })};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/oracle/recipes.h"

namespace oracle {
namespace {

using T = onnx::TensorProto;

const std::vector<double> kOrdinary = {1,       1, -1, 0.5, 2,   3, 0.1,
                                       1.0 / 3, 7, 10, 1.5, 0.7, 6, 1.0007};
const std::vector<double> kTiny = {0x1p-60,   0x1p-53,  0x1p-30, 1e-300,
                                   0x1p-1074, 9.9e-301, 1e-160,  1e-45};
const std::vector<double> kHuge = {0x1p60, 0x1p53, 16777217.0,        65504.0,
                                   1e300,  1e155,  9007199254740994.0};

Value binary(Builder& b, const char* op, const Value& x, const Value& y) {
  return b.add(op, {x, y});
}

// Sums and products whose rounding can be seen.
Value template_constant(Builder& b, Type type) {
  const double e = b.one_of<double>({0x1p-60, 0x1p-53, 0x1p-54, 0x1p-24, 0x1p-100, 1e-30});
  const double a = b.one_of<double>({1, 2, 3, 0.5, 10, 7});
  const Value one = b.scalar(type, a), small = b.scalar(type, b.chance(50) ? e : -e);
  switch (b.pick(12)) {
    case 0: return binary(b, "Add", one, small);
    case 1: return binary(b, "Sub", one, small);
    case 2: return binary(b, "Sub", binary(b, "Add", one, small), one);
    case 3: return binary(b, "Mul", binary(b, "Div", one, b.scalar(type, 3)), b.scalar(type, 3));
    case 4: {
      const Value root = b.add("Sqrt", {b.scalar(type, b.one_of<double>({2, 3, 5, 0.1}))});
      return binary(b, "Mul", root, root);
    }
    case 5: return binary(b, "Add", b.scalar(type, 0.1), b.scalar(type, 0.2));
    case 6: {
      const Value big = b.scalar(type, b.one_of(kHuge));
      return binary(b, "Sub", binary(b, "Add", big, one), big);
    }
    case 7: return b.add("Exp", {b.add("Log", {one})});
    case 8: {
      const Value list = b.constant(type, {4}, {a, e, -a, 1});
      return reduced(b, b.one_of<std::string>({"ReduceSum", "ReduceMean"}), list, {0}, false);
    }
    case 9:
      return binary(b, "Mul", b.scalar(type, b.one_of(kTiny)), b.scalar(type, b.one_of(kHuge)));
    case 10: {
      const Value rows = b.constant(type, {1, 3}, {a, e, -a});
      const Value columns = b.constant(type, {3, 1}, {1, 1, 1});
      return reshaped(b, b.add("MatMul", {rows, columns}), {1});
    }
    default: {
      const Value half = b.add("Pow", {one, b.scalar(type, b.one_of<double>({0.5, -1, 3}))});
      return b.add("Pow", {half, b.scalar(type, b.one_of<double>({2, -1, 1.0 / 3}))});
    }
  }
}

Value to_other_format(Builder& b, const Value& c) {
  const Index code = b.one_of<Index>({T::FLOAT16, T::BFLOAT16, T::FLOAT, T::DOUBLE});
  const Value other = b.add("Cast", {c}, {{"to", code}});
  return b.add("Cast", {other}, {{"to", Index{c.type()}}});
}

}  // namespace

double special_number(Builder& b) {
  const Index kind = b.pick(10);
  return b.one_of(kind < 7 ? kOrdinary : kind == 7 ? kHuge : kTiny);
}

Value reduced(Builder& b, const std::string& op, const Value& x, const Dims& axes, bool keep) {
  const bool as_input = b.opset() >= (op == "ReduceSum" ? 13 : 18);
  Attributes attributes;
  if (!keep || b.chance(50)) attributes.emplace_back("keepdims", Index{keep ? 1 : 0});
  if (as_input) return b.add(op, {x, b.integers(axes)}, attributes);
  attributes.emplace_back("axes", axes);
  return b.add(op, {x}, attributes);
}
Value clipped(Builder& b, const Value& x, const Value& low, const Value& high) {
  if (b.opset() < 11) {
    Attributes attributes;
    if (!low.name.empty()) {
      attributes.emplace_back("min", static_cast<float>(low.sample.at(0).middle()));
    }
    if (!high.name.empty()) {
      attributes.emplace_back("max", static_cast<float>(high.sample.at(0).middle()));
    }
    return b.add("Clip", {x}, attributes);
  }
  return b.add("Clip", {x, low, high});
}
Value reshaped(Builder& b, const Value& x, const Dims& dims) {
  return b.add("Reshape", {x, b.integers(dims)});
}
Value unsqueezed(Builder& b, const Value& x, const Dims& axes) {
  if (b.opset() < 13) return b.add("Unsqueeze", {x}, {{"axes", axes}});
  return b.add("Unsqueeze", {x, b.integers(axes)});
}

Value computed_constant(Builder& b, Type type, int depth) {
  b.tame = false;
  if (depth <= 0) return b.scalar(type, special_number(b));
  const Index kind = b.pick(10);
  if (kind < 4) return template_constant(b, type);
  if (kind < 6) {
    const Value x = computed_constant(b, type, depth - 1),
                y = computed_constant(b, type, depth - 1);
    return b.add(b.one_of<std::string>({"Add", "Sub", "Mul", "Div", "Max", "Min"}), {x, y});
  }
  const Value x = computed_constant(b, type, depth - 1);
  if (kind == 6) {
    return b.add(
        b.one_of<std::string>({"Sqrt", "Exp", "Log", "Reciprocal", "Neg", "Abs", "Tanh", "Sigmoid",
                               "Erf", "Softplus", "Sin", "Atan", "Softsign", "Relu"}),
        {x});
  }
  if (kind == 7) return to_other_format(b, x);
  return passed_on(b, x);
}

Value passed_on(Builder& b, const Value& c) {
  const Value one = reshaped(b, c, {1});
  const Type type = c.type();
  const Value result = [&]() -> Value {
    switch (b.pick(16)) {
      case 0:
        return clipped(b, b.constant(type, {1}, {c.sample.at(0).middle() + 7}), kAbsent,
                       reshaped(b, c, {}));
      case 1:
        return clipped(b, b.constant(type, {1}, {c.sample.at(0).middle() - 7}), reshaped(b, c, {}),
                       kAbsent);
      case 2: {
        if (b.opset() < 11) throw Rejected("Pad");
        const Value padded =
            b.add("Pad", {b.constant(type, {1}, {0}), b.integers({1, 0}), reshaped(b, c, {})});
        return b.add("Gather", {padded, b.integers({0})});
      }
      case 3: {
        const Value scalar = reshaped(b, c, {});
        const Value limit = b.add("Add", {scalar, b.scalar(type, 2.5)});
        const Value range = b.add("Range", {scalar, limit, b.scalar(type, 1)});
        return b.add("Gather", {range, b.integers({b.pick(2)})});
      }
      case 4: {
        const Value values =
            b.add("Concat", {b.constant(type, {1}, {0}), one}, {{"axis", Index{0}}});
        const Value hot = b.add("OneHot", {b.integers({1}), b.scalar(T::INT64, 2), values});
        return b.add("Gather", {reshaped(b, hot, {2}), b.integers({1})});
      }
      case 5:
        return b.add("Where", {b.constant(T::BOOL, {1}, {1}), one, b.constant(type, {1}, {5})});
      case 6: return b.add(b.one_of<std::string>({"Identity", "Dropout"}), {one});
      case 7:
        return reduced(b, b.one_of<std::string>({"ReduceMax", "ReduceMin", "ReduceMean"}),
                       b.add("Expand", {one, b.integers({3})}), {0}, true);
      case 8: {
        const Value zeros = b.constant(type, {3}, {0});
        const Value with = b.add("ScatterElements", {zeros, b.integers({1}), one});
        return b.add("Gather", {with, b.integers({1})});
      }
      case 9: return b.add("Gather", {b.add("Tile", {one, b.integers({2})}), b.integers({1})});
      case 10: {
        if (b.opset() < 11) throw Rejected("TopK");
        return b.add_all("TopK", {one, b.integers({1})}, {}, 2)[0];
      }
      case 11: {
        const Value image = reshaped(b, one, {1, 1, 1, 1});
        const Value pooled = b.add("MaxPool", {image}, {{"kernel_shape", Dims{1, 1}}});
        return reshaped(b, pooled, {1});
      }
      case 12: return b.add("CumSum", {one, b.scalar(T::INT64, 0)});
      case 13:
        return b.add("Einsum", {one, b.constant(type, {1}, {1})},
                     {{"equation", std::string("i,i->i")}});
      case 14: return b.add("PRelu", {b.constant(type, {1}, {-1}), one});
      default: return b.add("Sum", {one, b.constant(type, {1}, {0})});
    }
  }();
  return reshaped(b, result, {1});
}

Value residue(Builder& b, const Value& c) {
  b.tame = false;
  const Number& exact = c.sample.at(0);
  const double nearest = rounded(c.type(), exact).middle();
  if (!std::isfinite(nearest)) throw Rejected("an infinite constant");
  const Number left = exact - Number(nearest);
  const bool split = b.chance(70) && !(left.is_exact() && left.exact() == 0);
  const double rest = split ? left.middle() : nearest;
  if (rest == 0 || !std::isfinite(rest)) throw Rejected("nothing left");
  Value r = split ? b.add("Sub", {c, b.constant(c.type(), {1}, {nearest})}) : c;
  // A power of two at a time that is a number of the format.
  int power = -std::ilogb(rest);
  const int most = c.type() == T::DOUBLE ? 1000 : 100;
  while (power != 0) {
    const int step = std::clamp(power, -most, most);
    r = b.add("Mul", {r, b.constant(c.type(), {1}, {std::ldexp(1.0, step)})});
    power -= step;
  }
  return r;
}

}  // namespace oracle

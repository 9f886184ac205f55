// SPDX-License-Identifier: Apache-2.0
// Functions spelled out node by node, as exporters do, with constants of odd values and shapes.
#include <cmath>

#include "tests/oracle/recipes.h"

namespace oracle {
namespace {

// A constant as the pattern has it, or nearly.
Value pattern_constant(Builder& b, const Value& x, double usual) {
  const Type type = x.type();
  double value = usual;
  if (b.chance(15)) value = usual * b.one_of<double>({2, 0.5, 1 + 0x1p-20, 1.5, -1});
  if (b.chance(6)) value = special_number(b);
  if (b.chance(4)) value = b.one_of<double>({0x1p-1074, 0x1p-1073, 1e-310, 0x1p-149});
  b.tame = b.tame && std::abs(value) > 1e-6 && std::abs(value) < 1e6;
  Dims dims;
  switch (b.pick(10)) {
    case 0: dims = {1}; break;
    case 1: dims = {1, 1}; break;
    case 2: dims = Dims(x.dims().size(), 1); break;
    case 3: dims = {3, 1}; break;
    case 4: dims = x.dims(); break;
    case 5: dims = {2, 1, 1}; break;
    default: break;
  }
  if (b.chance(10))
    return b.add("Add",
                 {b.constant(type, dims, {value}), b.scalar(type, b.one_of<double>({0, 0x1p-60}))});
  return b.constant(type, dims, {value});
}

Value product(Builder& b, const Value& x, const Value& y) {
  return b.chance(50) ? b.add("Mul", {x, y}) : b.add("Mul", {y, x});
}
Value sum(Builder& b, const Value& x, const Value& y) {
  return b.chance(50) ? b.add("Add", {x, y}) : b.add("Add", {y, x});
}

// A half of it, in one step or two; what two steps make together may be no double.
Value halved(Builder& b, const Value& x, const Value& y) {
  switch (b.pick(4)) {
    case 0: return product(b, y, pattern_constant(b, x, 0.5));
    case 1: return b.add("Div", {y, pattern_constant(b, x, 2)});
    default: break;
  }
  const bool wide = x.type() == onnx::TensorProto::DOUBLE;
  const double least = wide ? 0x1p-1074 : 0x1p-149;
  const double factor = b.one_of<double>({1, 0.75, least, 3 * least, 0x1p60 * least, 1e30});
  const double divisor = b.one_of<double>({2, 2, 4, 0.5, 0x1p70, 3});
  b.tame = false;
  const Value up = b.scalar(x.type(), factor), down = b.scalar(x.type(), divisor);
  return b.chance(50) ? b.add("Div", {product(b, y, up), down})
                      : product(b, b.add("Div", {y, down}), up);
}

Value gelu_erf(Builder& b, const Value& x) {
  const Value inner = b.chance(50) ? b.add("Div", {x, pattern_constant(b, x, std::sqrt(2.0))})
                                   : product(b, x, pattern_constant(b, x, std::sqrt(0.5)));
  const Value one = sum(b, b.add("Erf", {inner}), pattern_constant(b, x, 1));
  return b.chance(67) ? halved(b, x, product(b, x, one)) : product(b, halved(b, x, x), one);
}
Value gelu_tanh(Builder& b, const Value& x) {
  const Value cube =
      b.chance(50) ? b.add("Pow", {x, pattern_constant(b, x, 3)}) : product(b, product(b, x, x), x);
  const Value curve = sum(b, x, product(b, cube, pattern_constant(b, x, 0.044715)));
  const Value squash =
      b.add("Tanh", {product(b, curve, pattern_constant(b, x, std::sqrt(2 / M_PI)))});
  const Value one = sum(b, squash, pattern_constant(b, x, 1));
  return b.chance(30) ? halved(b, x, product(b, x, one)) : product(b, halved(b, x, x), one);
}
Value silu(Builder& b, const Value& x) {
  const Value inner = b.chance(50) ? x : product(b, x, pattern_constant(b, x, 1.702));
  return product(b, x, b.add("Sigmoid", {inner}));
}
Value hard_swish(Builder& b, const Value& x) {
  if (b.chance(40)) {
    Attributes a;
    if (b.chance(60)) a.emplace_back("alpha", static_cast<float>(1.0 / 6));
    return product(b, x, b.add("HardSigmoid", {x}, a));
  }
  const Value low = b.scalar(x.type(), 0), high = b.scalar(x.type(), 6);
  const Value cut = clipped(b, sum(b, x, pattern_constant(b, x, 3)), low, high);
  return b.chance(50) ? b.add("Div", {product(b, x, cut), pattern_constant(b, x, 6)})
                      : product(b, x, b.add("Div", {cut, pattern_constant(b, x, 6)}));
}
Value mish(Builder& b, const Value& x) {
  return product(b, x, b.add("Tanh", {b.add("Softplus", {x})}));
}

Value squared(Builder& b, const Value& x) {
  return b.chance(70) ? b.add("Pow", {x, pattern_constant(b, x, 2)}) : b.add("Mul", {x, x});
}
Value layer_norm(Builder& b, const Value& x) {
  if (x.dims().empty()) throw Rejected("a scalar");
  const bool centre = b.chance(70);
  const Dims axes{b.chance(70) ? -1 : b.pick(static_cast<Index>(x.dims().size()))};
  const Value shifted = centre ? b.add("Sub", {x, reduced(b, "ReduceMean", x, axes, true)}) : x;
  const Value variance = reduced(b, "ReduceMean", squared(b, shifted), axes, true);
  const Value padded =
      sum(b, variance, pattern_constant(b, x, b.one_of<double>({1e-5, 1e-3, 0.5})));
  Value y;
  switch (b.pick(3)) {
    case 0: y = b.add("Div", {shifted, b.add("Sqrt", {padded})}); break;
    case 1: y = product(b, shifted, b.add("Reciprocal", {b.add("Sqrt", {padded})})); break;
    default: y = b.add("Div", {shifted, b.add("Pow", {padded, pattern_constant(b, x, 0.5)})});
  }
  if (b.chance(50)) y = product(b, y, b.random_constant(x.type(), {x.dims().back()}));
  if (b.chance(40)) y = sum(b, y, b.random_constant(x.type(), {x.dims().back()}));
  return y;
}
Value softmax(Builder& b, const Value& x) {
  if (x.dims().empty()) throw Rejected("a scalar");
  const Dims axes{b.chance(70) ? -1 : b.pick(static_cast<Index>(x.dims().size()))};
  Value shifted = x;
  if (b.chance(60)) shifted = b.add("Sub", {x, reduced(b, "ReduceMax", x, axes, true)});
  const Value e = b.add("Exp", {shifted});
  if (b.chance(25))
    return b.add("Sub", {shifted, b.add("Log", {reduced(b, "ReduceSum", e, axes, true)})});
  return b.add("Div", {e, reduced(b, "ReduceSum", e, axes, true)});
}
Value batch_norm(Builder& b, const Value& x) {
  if (x.dims().empty()) throw Rejected("a scalar");
  const Index n = x.dims().back();
  const auto vector = [&](double low) { return b.random_constant(x.type(), {n}, low, 2); };
  const Value deviation = b.add("Sqrt", {b.add("Add", {vector(0), b.scalar(x.type(), 1e-5)})});
  const Value shifted = b.add("Sub", {x, vector(-2)});
  return b.add("Add", {b.add("Mul", {b.add("Div", {shifted, deviation}), vector(-2)}), vector(-2)});
}

}  // namespace

Value pattern(Builder& b, const Value& x) {
  using Recipe = Value (*)(Builder&, const Value&);
  static const std::vector<Recipe> kRecipes = {gelu_erf,   gelu_erf, gelu_tanh,  silu,
                                               hard_swish, mish,     layer_norm, layer_norm,
                                               layer_norm, softmax,  batch_norm};
  Value y = b.one_of(kRecipes)(b, x);
  // Tiny factors are made up for.
  const double limit = x.type() == onnx::TensorProto::DOUBLE ? 1e300 : 1e38;
  for (int k = 0; k < 4; ++k) {
    Number size(0);
    for (const Number& e : y.sample.entries) size = max(size, abs(e));
    if (compare(size, Number(0)) == 0 || size.middle() * limit > 1e3 || size.middle() > 1e-20)
      break;
    y = b.add("Mul", {y, b.scalar(x.type(), limit)});
  }
  return y;
}

}  // namespace oracle

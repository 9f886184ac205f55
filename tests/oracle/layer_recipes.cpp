// SPDX-License-Identifier: Apache-2.0
// Layers of moving values.
#include <cmath>

#include "tests/oracle/recipes.h"

namespace oracle {
namespace {

using T = onnx::TensorProto;

// A constant of ordinary size that rounding may spoil.
Value odd_constant(Builder& b, Type type) {
  switch (b.pick(5)) {
    case 4: return reshaped(b, integer_constant(b, type), {1});
    case 0: return residue(b, reshaped(b, computed_constant(b, type, 3), {1}));
    case 1: return reshaped(b, computed_constant(b, type, 2), {1});
    case 2: return reshaped(b, decided_constant(b, type), {1});
    default: b.tame = false; return b.constant(type, {1}, {special_number(b)});
  }
}

// Shapes that broadcast with x, larger ones too.
Dims partner_dims(Builder& b, const Dims& x) {
  Dims dims;
  const std::size_t skip =
      x.empty() ? 0 : static_cast<std::size_t>(b.pick(static_cast<Index>(x.size()) + 1));
  for (std::size_t a = skip; a < x.size(); ++a) {
    dims.push_back(b.chance(40) ? 1 : x[a] == 1 && b.chance(20) ? 2 + b.pick(2) : x[a]);
  }
  if (skip == 0 && b.chance(5)) dims.insert(dims.begin(), 2);
  return dims;
}

Value matrix(Builder& b, Type type, Index rows, Index columns) {
  const Value w = b.random_constant(type, {rows, columns});
  if (b.chance(80)) return w;
  return b.add(b.one_of<std::string>({"Mul", "Add", "Sub", "Div"}), {w, odd_constant(b, type)});
}

Value dense(Builder& b, const Value& x) {
  const Index n = x.dims().empty() ? 0 : x.dims().back(), m = 1 + b.pick(4);
  if (n == 0) throw Rejected("a scalar");
  if (x.dims().size() == 2 && b.chance(60)) {
    Attributes attributes;
    const bool flip = b.chance(30);
    if (flip) attributes.emplace_back("transB", Index{1});
    if (b.chance(20)) attributes.emplace_back("alpha", static_cast<float>(b.uniform(-2, 2)));
    if (b.chance(20)) attributes.emplace_back("beta", static_cast<float>(b.uniform(-2, 2)));
    const Value w = flip ? matrix(b, x.type(), m, n) : matrix(b, x.type(), n, m);
    if (b.opset() >= 11 && b.chance(30)) return b.add("Gemm", {x, w}, attributes);
    return b.add("Gemm", {x, w, b.random_constant(x.type(), b.chance(50) ? Dims{m} : Dims{1, m})},
                 attributes);
  }
  return b.add("MatMul", {x, matrix(b, x.type(), n, m)});
}

Value arithmetic(Builder& b, const Value& x) {
  const Value y = b.random_constant(x.type(), partner_dims(b, x.dims()), 0.25, 2);
  const std::string op =
      b.one_of<std::string>({"Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Mul"});
  if (op == "PRelu")
    return b.add(op, {x, b.random_constant(x.type(), {x.dims().empty() ? 1 : x.dims().back()})});
  const bool flip = b.chance(30) && op != "Div";
  return b.add(op, {flip ? y : x, flip ? x : y});
}

Value activation(Builder& b, const Value& x) {
  struct Kind {
    std::string op;
    std::vector<std::string> attributes;
  };
  static const std::vector<Kind> kKinds = {{"Relu", {}},
                                           {"LeakyRelu", {"alpha"}},
                                           {"Elu", {"alpha"}},
                                           {"Celu", {"alpha"}},
                                           {"Selu", {"alpha", "gamma"}},
                                           {"HardSigmoid", {"alpha", "beta"}},
                                           {"HardSwish", {}},
                                           {"Sigmoid", {}},
                                           {"Tanh", {}},
                                           {"Softplus", {}},
                                           {"Softsign", {}},
                                           {"Mish", {}},
                                           {"Gelu", {}},
                                           {"Erf", {}},
                                           {"Sin", {}},
                                           {"Cos", {}},
                                           {"Atan", {}},
                                           {"Asinh", {}},
                                           {"Abs", {}},
                                           {"ThresholdedRelu", {"alpha"}},
                                           {"Shrink", {"lambd", "bias"}},
                                           {"Exp", {}},
                                           {"Floor", {}},
                                           {"Sign", {}},
                                           {"Neg", {}},
                                           {"Reciprocal", {}},
                                           {"Identity", {}}};
  const Kind& kind = b.one_of(kKinds);
  Attributes attributes;
  for (const std::string& name : kind.attributes) {
    if (b.chance(50)) attributes.emplace_back(name, static_cast<float>(b.uniform(0.05, 2)));
  }
  return b.add(kind.op, {x}, attributes);
}

Value clip_layer(Builder& b, const Value& x) {
  const auto bound = [&](double near) -> Value {
    if (b.chance(25)) return kAbsent;
    if (b.chance(40)) return b.scalar(x.type(), b.chance(50) ? near : special_number(b));
    return reshaped(b, odd_constant(b, x.type()), {});
  };
  const Value low = bound(-0.5), high = bound(0.75);
  return clipped(b, x, low, high);
}

Value normalisation(Builder& b, const Value& x) {
  const Type type = x.type();
  Attributes eps;
  if (b.chance(50))
    eps.emplace_back("epsilon", static_cast<float>(b.one_of<double>({1e-5, 1e-3, 0.125, 1e-12})));
  const Index last = x.dims().empty() ? 1 : x.dims().back();
  const auto channels = [&](double low = -2) {
    return b.random_constant(type, {x.dims().at(1)}, low, 2);
  };
  const auto need = [&](std::size_t rank) {
    if (x.dims().size() < rank) throw Rejected("rank");
  };
  switch (b.pick(9)) {
    case 0: need(1); return b.add("LayerNormalization", {x, b.random_constant(type, {last})}, eps);
    case 1: {
      need(2);
      const Value variance = b.chance(40) ? b.constant(type, {x.dims()[1]}, {0}) : channels(0);
      return b.add("BatchNormalization", {x, channels(), channels(), channels(), variance}, eps);
    }
    case 2: need(3); return b.add("InstanceNormalization", {x, channels(), channels()}, eps);
    case 3: {
      need(2);
      Attributes a;
      if (b.chance(60)) a.emplace_back("axis", b.pick(static_cast<Index>(x.dims().size())));
      return b.add(b.one_of<std::string>({"Softmax", "LogSoftmax", "Softmax", "Hardmax"}), {x}, a);
    }
    case 4: need(1); return b.add("LpNormalization", {x}, {{"p", 1 + b.pick(2)}});
    case 5:
      need(3);
      {
        Attributes a{{"size", 1 + b.pick(3)}};
        if (b.chance(50)) a.emplace_back("alpha", static_cast<float>(b.uniform(0.1, 2)));
        if (b.chance(30)) a.emplace_back("beta", 0.5F);
        return b.add("LRN", {x}, a);
      }
    case 6: need(1); return b.add("RMSNormalization", {x, b.random_constant(type, {last})}, eps);
    case 7: need(4); return b.add("MeanVarianceNormalization", {x});
    default: {
      need(3);
      const bool late = b.opset() >= 21;
      const Index n = late ? x.dims()[1] : 1;
      Attributes a = eps;
      a.emplace_back("num_groups", Index{1});
      return b.add("GroupNormalization",
                   {x, b.random_constant(type, {n}), b.random_constant(type, {n})}, a);
    }
  }
}

Value convolution(Builder& b, const Value& x) {
  if (x.dims().size() != 4) throw Rejected("no image");
  const Index c = x.dims()[1], h = std::min<Index>(2, x.dims()[2]),
              w = std::min<Index>(3, x.dims()[3]);
  Attributes a;
  if (b.chance(40)) a.emplace_back("strides", Dims{1 + b.pick(2), 1 + b.pick(2)});
  if (b.chance(40)) a.emplace_back("pads", Dims{b.pick(2), b.pick(2), b.pick(2), b.pick(2)});
  switch (b.pick(5)) {
    case 0: return b.add("Conv", {x, b.random_constant(x.type(), {1 + b.pick(2), c, h, w})}, a);
    case 1:
      return b.add("ConvTranspose", {x, b.random_constant(x.type(), {c, 1 + b.pick(2), h, w})});
    default: {
      const std::string op = b.one_of<std::string>({"MaxPool", "AveragePool", "LpPool"});
      a.emplace_back("kernel_shape", Dims{h, w});
      if (b.chance(30) && op != "LpPool") a.emplace_back("ceil_mode", Index{1});
      return b.add(op, {x}, a);
    }
  }
}

Value reduction(Builder& b, const Value& x) {
  if (x.dims().empty()) throw Rejected("a scalar");
  const std::string op =
      b.one_of<std::string>({"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1",
                             "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare", "ReduceProd"});
  return reduced(b, op, x, {b.pick(static_cast<Index>(x.dims().size()))}, b.chance(70));
}

Value residual(Builder& b, const Value& x) {
  return b.add(
      b.one_of<std::string>({"Add", "Sub", "Mul", "Max", "Concat"}) == "Concat" ? "Sum" : "Add",
      {x, activation(b, x)});
}

// Products and quotients of values that move.
Value product_of_moving(Builder& b, const Value& x) {
  b.tame = false;
  const Value y = b.chance(50) ? activation(b, x) : dense(b, x);
  switch (b.pick(5)) {
    case 0: return b.add("Mul", {x, x});
    case 1: return b.add("Mul", {x, y});
    case 2:
      return b.add("Div",
                   {x, b.add("Add", {b.add("Abs", {y}), b.scalar(x.type(), b.uniform(0.1, 2))})});
    case 3: {
      // Attention without weights.
      if (x.dims().size() != 2) throw Rejected("rank");
      const Value scores = b.add("MatMul", {x, b.add("Transpose", {x})});
      return b.add("MatMul", {b.add("Softmax", {b.add("Mul", {scores, b.scalar(x.type(), 0.5)})},
                                    {{"axis", Index{1}}}),
                              x});
    }
    default: return b.add(b.one_of<std::string>({"Max", "Min", "Sub", "Add"}), {x, y});
  }
}

}  // namespace

// Bounds next to 0, and values that are as small.
Value tiny_clip(Builder& b, const Value& x) {
  if (x.type() != T::DOUBLE || b.opset() < 11) throw Rejected("no bounds of this size");
  b.tame = false;
  static const std::vector<double> kBounds = {9.9e-301, 6e-301, 1e-305, 0x1p-1022, 0x1p-1060};
  const double bound = b.one_of(kBounds) * b.one_of<double>({1, 1, -1});
  const Value end = b.scalar(x.type(), bound),
              other = b.scalar(x.type(), b.chance(50) ? 0 : -bound);
  const Value none = b.chance(50) ? kAbsent : other;
  const auto cut = [&](const Value& in) {
    return bound > 0 ? clipped(b, in, none, end) : clipped(b, in, end, none);
  };
  if (x.name == "x" && b.chance(70)) {
    b.near = bound;
    return b.add("Mul", {cut(x), b.scalar(x.type(), 3)});
  }
  const double size = std::max(std::abs(bound) * b.one_of<double>({0.5, 1, 2}), 1e-307);
  const Value small = b.add("Mul", {x, b.scalar(x.type(), size)});
  return b.add("Div", {cut(small), b.scalar(x.type(), size)});
}

Value scaled_by_constant(Builder& b, const Value& x) {
  const Value c = odd_constant(b, x.type());
  switch (b.pick(6)) {
    case 0: return b.add("Div", {x, c});
    case 1: {
      const Index n = x.dims().empty() ? 1 : x.dims().back();
      if (x.dims().empty()) throw Rejected("a scalar");
      return b.add("MatMul", {x, b.add("Mul", {b.random_constant(x.type(), {n, 2}), c})});
    }
    case 2: return b.add("PRelu", {x, c});
    case 3: return b.add("Mul", {c, x});
    case 4: return b.add("Pow", {x, c});
    default: return b.add("Mul", {x, c});
  }
}

Value plain_layer(Builder& b, const Value& x) {
  using Recipe = Value (*)(Builder&, const Value&);
  static const std::vector<Recipe> kRecipes = {
      dense,       dense,      arithmetic, arithmetic,       activation,
      activation,  activation, clip_layer, normalisation,    normalisation,
      convolution, reduction,  residual,   product_of_moving};
  return b.one_of(kRecipes)(b, x);
}

Value cast_layer(Builder& b, const Value& x) {
  if (b.chance(25)) {
    b.tame = false;  // a rounding error may be the next integer
    const Value whole =
        b.add("Cast", {x}, {{"to", b.one_of<Index>({T::INT64, T::INT32, T::BOOL})}});
    return b.add("Cast", {whole}, {{"to", Index{x.type()}}});
  }
  const Value other =
      b.add("Cast", {x}, {{"to", b.one_of<Index>({T::FLOAT16, T::BFLOAT16, T::FLOAT, T::DOUBLE})}});
  const Value scaled = b.add("Mul", {other, b.random_constant(other.type(), {1})});
  return b.add("Cast", {scaled}, {{"to", Index{x.type()}}});
}

// The other one may be of any type; what comes back moves with both.
Value two_inputs(Builder& b, const Value& x, const Value& other) {
  b.tame = false;
  Value y = other;
  if (!is_floating(y.type()) || y.type() != x.type() || b.chance(40)) {
    if (b.chance(60))
      y = b.add("Cast", {y}, {{"to", b.one_of<Index>({T::INT32, T::INT64, T::BOOL})}});
    y = b.add("Cast", {y}, {{"to", Index{x.type()}}});
  }
  if (b.chance(20))
    y = b.add(b.one_of<std::string>({"Tanh", "Relu", "Sigmoid", "Floor", "Sign"}), {y});
  if (b.chance(20)) {
    const Value c = b.add("Greater", {y, b.constant(x.type(), {1}, {0.5})});
    return b.add("Where", {c, x, b.add("Mul", {x, b.scalar(x.type(), 3)})});
  }
  return b.add(b.one_of<std::string>({"Mul", "Mul", "Add", "Sub", "Max"}), {x, y});
}

}  // namespace oracle

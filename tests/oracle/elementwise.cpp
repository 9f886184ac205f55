// SPDX-License-Identifier: Apache-2.0
// Functions of single entries.
#include "tests/oracle/functions.h"
#include "tests/oracle/node.h"

namespace oracle {
namespace {

using T = onnx::TensorProto;

template <class F>
Array mapped(const Array& x, F&& f) {
  Array y(x.type, x.dims);
  for (Index i = 0; i < x.size(); ++i) y.at(i) = wrapped(y.type, f(x.at(i)));
  return y;
}
template <class F>
Array asked(const Array& x, F&& f) {
  Array y(T::BOOL, x.dims);
  for (Index i = 0; i < x.size(); ++i) y.at(i) = Number(f(x.at(i)) ? 1 : 0);
  return y;
}

template <Number (*F)(const Number&)>
std::vector<Array> plain(const Node& node) {
  return {mapped(node.in(0), F)};
}

Number negative(const Number& x) { return -x; }
Number copy(const Number& x) { return x; }
Number relu(const Number& x) { return max(x, Number(0)); }
Number inverse(const Number& x) { return Number(1) / x; }
Number softsign(const Number& x) { return x / (Number(1) + abs(x)); }
Number sign_number(const Number& x) { return Number(sign(x)); }
Number mish(const Number& x) { return x * tanh(softplus(x)); }
Number silu(const Number& x) { return x * sigmoid(x); }
Number hard_sigmoid(const Number& x, const Number& alpha, const Number& beta) {
  return max(Number(0), min(Number(1), alpha * x + beta));
}
Number hard_swish(const Number& x) {
  return x * hard_sigmoid(x, Number::fraction(1, 6), Number::fraction(1, 2));
}
// Slopes on both sides of 0 without asking on which x is.
Number bent(const Number& x, const Number& below) {
  return max(x, Number(0)) + below * min(x, Number(0));
}

std::vector<Array> leaky_relu(const Node& node) {
  const Number alpha = node.real("alpha", 0.01F);
  return {mapped(node.in(0), [&](const Number& x) { return bent(x, alpha); })};
}
std::vector<Array> elu(const Node& node) {
  const Number alpha = node.real("alpha", 1.0F);
  return {mapped(node.in(0), [&](const Number& x) {
    return max(x, Number(0)) + alpha * expm1(min(x, Number(0)));
  })};
}
std::vector<Array> celu(const Node& node) {
  const Number alpha = node.real("alpha", 1.0F);
  return {mapped(node.in(0), [&](const Number& x) {
    const Number curve = alpha * expm1(x / alpha);
    return max(x, Number(0)) + min(Number(0), curve);
  })};
}
std::vector<Array> selu(const Node& node) {
  const Number alpha = node.real("alpha", node.opset() < 6 ? 1.6732F : 1.67326319217681884765625F);
  const Number gamma = node.real("gamma", node.opset() < 6 ? 1.0507F : 1.05070102214813232421875F);
  return {mapped(node.in(0), [&](const Number& x) {
    return gamma * (max(x, Number(0)) + alpha * expm1(min(x, Number(0))));
  })};
}
std::vector<Array> gelu(const Node& node) {
  const bool by_tanh = node.text("approximate", "none") == "tanh";
  const Number half = Number::fraction(1, 2), one(1), two(2);
  return {mapped(node.in(0), [&](const Number& x) {
    if (!by_tanh) return half * x * (one + erf(x / sqrt(two)));
    const Number cubic = x + Number::fraction(44715, 1000000) * x * x * x;
    return half * x * (one + tanh(sqrt(two / pi()) * cubic));
  })};
}
std::vector<Array> swish(const Node& node) {
  const Number alpha = node.real("alpha", 1.0F);
  return {mapped(node.in(0), [&](const Number& x) { return x * sigmoid(alpha * x); })};
}
std::vector<Array> hard_sigmoid_op(const Node& node) {
  const Number alpha = node.real("alpha", 0.2F), beta = node.real("beta", 0.5F);
  return {mapped(node.in(0), [&](const Number& x) { return hard_sigmoid(x, alpha, beta); })};
}
std::vector<Array> thresholded_relu(const Node& node) {
  const Number alpha = node.real("alpha", 1.0F);
  return {mapped(node.in(0), [&](const Number& x) { return alpha < x ? x : Number(0); })};
}
std::vector<Array> shrink(const Node& node) {
  const Number bias = node.real("bias", 0.0F), lambda = node.real("lambd", 0.5F);
  return {mapped(node.in(0), [&](const Number& x) {
    if (x < -lambda) return x + bias;
    if (lambda < x) return x - bias;
    return Number(0);
  })};
}
std::vector<Array> is_inf(const Node& node) {
  const bool above = node.integer("detect_positive", 1) != 0;
  const bool below = node.integer("detect_negative", 1) != 0;
  return {asked(node.in(0), [&](const Number& x) {
    return (above && x.infinite() > 0) || (below && x.infinite() < 0);
  })};
}
std::vector<Array> is_nan(const Node& node) {
  return {asked(node.in(0), [](const Number& x) { return x.is_nan(); })};
}
std::vector<Array> logical_not(const Node& node) {
  return {asked(node.in(0), [](const Number& x) { return sign(x) == 0; })};
}
std::vector<Array> bitwise_not(const Node& node) {
  return {mapped(node.in(0), [](const Number& x) { return Number(-1) - x; })};
}

std::vector<Array> clip(const Node& node) {
  std::optional<Number> low, high;
  if (node.opset() < 11) {
    if (node.find("min") != nullptr) low = node.real("min", 0);
    if (node.find("max") != nullptr) high = node.real("max", 0);
  } else {
    if (node.has(1)) low = node.in(1).at(0);
    if (node.has(2)) high = node.in(2).at(0);
  }
  return {mapped(node.in(0), [&](Number x) {
    if (low) x = max(x, *low);
    if (high) x = min(x, *high);
    return x;
  })};
}

std::vector<Array> dropout(const Node& node) {
  if (node.has(2) && sign(node.in(2).at(0)) != 0) throw Missing("training");
  std::vector<Array> out{node.in(0)};
  if (node.wants_output(1)) {
    Array mask(T::BOOL, node.in(0).dims);
    for (Number& e : mask.entries) e = Number(1);
    out.push_back(std::move(mask));
  }
  return out;
}

}  // namespace

void add_elementwise(Table& table) {
  const Table rows = {
      {"Neg", plain<negative>},
      {"Abs", plain<abs>},
      {"Sqrt", plain<sqrt>},
      {"Reciprocal", plain<inverse>},
      {"Exp", plain<exp>},
      {"Log", plain<log>},
      {"Erf", plain<erf>},
      {"Sin", plain<sin>},
      {"Cos", plain<cos>},
      {"Tan", plain<tan>},
      {"Asin", plain<asin>},
      {"Acos", plain<acos>},
      {"Atan", plain<atan>},
      {"Sinh", plain<sinh>},
      {"Cosh", plain<cosh>},
      {"Tanh", plain<tanh>},
      {"Asinh", plain<asinh>},
      {"Acosh", plain<acosh>},
      {"Atanh", plain<atanh>},
      {"Sigmoid", plain<sigmoid>},
      {"Softplus", plain<softplus>},
      {"Softsign", plain<softsign>},
      {"Relu", plain<relu>},
      {"Mish", plain<mish>},
      {"Silu", plain<silu>},
      {"HardSwish", plain<hard_swish>},
      {"Sign", plain<sign_number>},
      {"Floor", plain<floor>},
      {"Ceil", plain<ceil>},
      {"Round", plain<round_half_even>},
      {"Identity", plain<copy>},
      {"LeakyRelu", leaky_relu},
      {"Elu", elu},
      {"Celu", celu},
      {"Selu", selu},
      {"Gelu", gelu},
      {"Swish", swish},
      {"HardSigmoid", hard_sigmoid_op},
      {"ThresholdedRelu", thresholded_relu},
      {"Shrink", shrink},
      {"IsInf", is_inf},
      {"IsNaN", is_nan},
      {"Not", logical_not},
      {"BitwiseNot", bitwise_not},
      {"Clip", clip},
      {"Dropout", dropout},
  };
  table.insert(rows.begin(), rows.end());
}

}  // namespace oracle

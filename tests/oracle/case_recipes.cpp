// SPDX-License-Identifier: Apache-2.0
// The operators' worked examples as graphs: every loadable operator is among them.
#include <cmath>

#include "ops/kind.h"
#include "tests/oracle/generator.h"
#include "tests/oracle/recipes.h"

namespace oracle {
namespace {

using T = onnx::TensorProto;
using lipscope::OpCase;

Type type_of(lipscope::ElementType type) {
  using E = lipscope::ElementType;
  switch (type) {
    case E::kFloat16: return T::FLOAT16;
    case E::kBFloat16: return T::BFLOAT16;
    case E::kFloat32: return T::FLOAT;
    case E::kFloat64: return T::DOUBLE;
    case E::kInt8: return T::INT8;
    case E::kInt16: return T::INT16;
    case E::kInt32: return T::INT32;
    case E::kInt64: return T::INT64;
    case E::kUInt8: return T::UINT8;
    case E::kUInt16: return T::UINT16;
    case E::kUInt32: return T::UINT32;
    case E::kUInt64: return T::UINT64;
    default: return T::BOOL;
  }
}

Array array_of(const lipscope::Tensor& tensor) {
  Array array(type_of(tensor.type()), tensor.shape());
  for (Index i = 0; i < array.size(); ++i) {
    const bool real = is_floating(array.type);
    if (real) {
      array.at(i) = rounded(array.type, Number(tensor.at(i)));
    } else {
      array.at(i) = wrapped(array.type, Number(tensor.ints()[Array::to_size(i)]));
    }
  }
  return array;
}

Attributes attributes_of(Builder& b, const OpCase& example) {
  struct Convert {
    Attribute operator()(Index v) const { return v; }
    Attribute operator()(double v) const { return static_cast<float>(v); }
    Attribute operator()(const std::string& v) const { return v; }
    Attribute operator()(const std::vector<Index>& v) const { return v; }
    Attribute operator()(const std::vector<double>& v) const {
      return std::vector<float>(v.begin(), v.end());
    }
    Attribute operator()(const std::vector<std::string>&) const { throw Rejected("strings"); }
    Attribute operator()(const lipscope::Tensor& v) const { return array_of(v); }
  };
  Attributes list;
  for (const auto& [name, value] : example.attributes) {
    if (!b.chance(12)) list.emplace_back(name, std::visit(Convert{}, value));
  }
  return list;
}

OpCase example_of(const CaseChoice& choice) {
  std::mt19937_64 rng(7);
  return lipscope::op_kinds()[choice.kind].cases(rng)[choice.example];
}

}  // namespace

CaseChoice choose_case(std::mt19937_64& rng) {
  CaseChoice choice;
  choice.kind = rng() % lipscope::op_kinds().size();
  std::mt19937_64 fixed(7);
  const auto cases = lipscope::op_kinds()[choice.kind].cases(fixed);
  choice.example = rng() % cases.size();
  choice.opset = cases[choice.example].opset;
  return choice;
}

Value case_layer(Builder& b, const CaseChoice& choice) {
  const OpCase example = example_of(choice);
  const std::string op(lipscope::op_kinds()[choice.kind].name);
  std::vector<Value> inputs;
  bool moves = false;
  for (const OpCase::Input& input : example.inputs) {
    const Array sample = array_of(input.value);
    // The first one that may move does, others now and then.
    const bool may_move = !input.constant && is_floating(sample.type) && sample.size() > 0;
    if (may_move && !moves) {
      moves = true;
      Value x = b.input("x", sample);
      if (b.chance(20)) x = b.add("Mul", {x, b.scalar(x.type(), b.uniform(0.5, 2))});
      inputs.push_back(x);
    } else if (may_move && b.chance(40)) {
      inputs.push_back(b.input("y" + std::to_string(inputs.size()), sample));
    } else if (is_floating(sample.type) && sample.size() > 0 && b.chance(30)) {
      // Computed: 3c / 3, or c + e.
      const Value c = b.constant(sample);
      b.tame = false;
      const Value three = b.scalar(sample.type, 3);
      inputs.push_back(b.chance(50) ? b.add("Mul", {b.add("Div", {c, three}), three})
                                    : b.add("Add", {c, b.scalar(sample.type, 0x1p-60)}));
    } else {
      inputs.push_back(b.constant(sample));
    }
  }
  const auto outputs = static_cast<int>(example.outputs);
  const std::vector<Value> made = b.add_all(op, inputs, attributes_of(b, example), outputs);
  Value y = made[static_cast<std::size_t>(b.pick(outputs))];
  if (!is_floating(y.type())) y = b.add("Cast", {y}, {{"to", Index{T::FLOAT}}});
  if (y.sample.moving) return y;
  // A constant that scales something which moves.
  const Value x = moves ? inputs[0] : b.input("x", y.type(), {1, 2});
  const Value flat = reshaped(b, y, {-1, 1});
  const Value row = reshaped(
      b, x.type() == y.type() ? x : b.add("Cast", {x}, {{"to", Index{y.type()}}}), {1, -1});
  return b.add("Mul", {flat, row});
}

}  // namespace oracle

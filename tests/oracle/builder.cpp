// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/builder.h"

#include <cmath>
#include <set>

#include "tests/oracle/node.h"

namespace oracle {
namespace {

using T = onnx::TensorProto;

void set_attribute(onnx::NodeProto& node, const std::string& name, const Attribute& value) {
  auto* a = node.add_attribute();
  a->set_name(name);
  struct Setter {
    onnx::AttributeProto* a;
    void operator()(Index v) const {
      a->set_type(onnx::AttributeProto::INT);
      a->set_i(v);
    }
    void operator()(float v) const {
      a->set_type(onnx::AttributeProto::FLOAT);
      a->set_f(v);
    }
    void operator()(const std::string& v) const {
      a->set_type(onnx::AttributeProto::STRING);
      a->set_s(v);
    }
    void operator()(const Dims& v) const {
      a->set_type(onnx::AttributeProto::INTS);
      for (const Index i : v) a->add_ints(i);
    }
    void operator()(const std::vector<float>& v) const {
      a->set_type(onnx::AttributeProto::FLOATS);
      for (const float f : v) a->add_floats(f);
    }
    void operator()(const Array& v) const {
      a->set_type(onnx::AttributeProto::TENSOR);
      *a->mutable_t() = make_tensor(v);
    }
  };
  std::visit(Setter{a}, value);
}

// Bits of an exact number of a small format, which it has to fit.
std::uint32_t small_bits(double value, int exponent_bits, int mantissa_bits) {
  const std::uint32_t sign = std::signbit(value) ? 1U << (exponent_bits + mantissa_bits) : 0;
  const double size = std::abs(value);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (std::isinf(size)) return sign | (((1U << exponent_bits) - 1) << mantissa_bits);
  if (size == 0) return sign;
  const int exponent = std::max(std::ilogb(size), 1 - bias);
  const auto steps = static_cast<std::uint32_t>(std::ldexp(size, mantissa_bits - exponent));
  if (steps < (1U << mantissa_bits)) return sign | steps;  // subnormal
  return sign | (static_cast<std::uint32_t>(exponent + bias) << mantissa_bits) |
         (steps - (1U << mantissa_bits));
}

constexpr Index kMostEntries = 160;
constexpr double kLargest = 1e305;

}  // namespace

T make_tensor(const Array& array) {
  T tensor;
  tensor.set_data_type(array.type);
  for (const Index d : array.dims) tensor.add_dims(d);
  const auto real = [](const Number& e) { return e.middle(); };
  for (const Number& e : array.entries) {
    switch (array.type) {
      case T::FLOAT: tensor.add_float_data(static_cast<float>(real(e))); break;
      case T::DOUBLE: tensor.add_double_data(real(e)); break;
      case T::FLOAT16: tensor.add_int32_data(static_cast<int>(small_bits(real(e), 5, 10))); break;
      case T::BFLOAT16: tensor.add_int32_data(static_cast<int>(small_bits(real(e), 8, 7))); break;
      case T::INT64: tensor.add_int64_data(e.integer()); break;
      case T::UINT32:
      case T::UINT64: tensor.add_uint64_data(e.exact().get_num().get_ui()); break;
      default: tensor.add_int32_data(static_cast<int>(e.integer()));
    }
  }
  return tensor;
}

Builder::Builder(std::uint64_t seed, int opset) : opset_(opset), rng_(seed) {
  model_.set_ir_version(8);
  model_.set_producer_name("oracle");
  auto* import = model_.add_opset_import();
  import->set_domain("");
  import->set_version(opset);
  model_.mutable_graph()->set_name("graph");
}

double Builder::uniform(double low, double high) {
  constexpr int kSteps = 1 << 20;
  return low + (high - low) * static_cast<double>(pick(kSteps)) / kSteps;
}

Value Builder::input(const std::string& name, Array sample) {
  auto* info = model_.mutable_graph()->add_input();
  info->set_name(name);
  auto* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(sample.type);
  tensor->mutable_shape();
  for (const Index d : sample.dims) tensor->mutable_shape()->add_dim()->set_dim_value(d);
  sample.moving = true;
  return {name, std::move(sample)};
}
Value Builder::input(const std::string& name, Type type, Dims dims) {
  Array sample(type, std::move(dims));
  for (Number& e : sample.entries) {
    e = is_floating(type) ? Number(std::round(uniform(-2, 2) * 4096) / 4096) : Number(pick(4));
  }
  return input(name, std::move(sample));
}

Value Builder::constant(const Array& array) {
  Value value{"c" + std::to_string(++names_), array};
  if (chance(70)) {
    T tensor = make_tensor(array);
    tensor.set_name(value.name);
    *model_.mutable_graph()->add_initializer() = std::move(tensor);
  } else {
    auto* node = model_.mutable_graph()->add_node();
    node->set_op_type("Constant");
    node->add_output(value.name);
    set_attribute(*node, "value", array);
  }
  for (Index i = 0; i < std::min<Index>(3, array.size()) && is_floating(array.type); ++i) {
    if (array.at(i).is_finite()) landmarks_.push_back(array.at(i).middle());
  }
  return value;
}
Value Builder::constant(Type type, Dims dims, const std::vector<double>& entries) {
  Array array(type, std::move(dims));
  for (Index i = 0; i < array.size(); ++i) {
    const Number e(entries[Array::to_size(i % static_cast<Index>(entries.size()))]);
    array.at(i) = is_floating(type) ? rounded(type, e) : wrapped(type, e);
  }
  return constant(array);
}
Value Builder::integers(const std::vector<Index>& entries) {
  return constant(int64_array({static_cast<Index>(entries.size())}, entries));
}
Value Builder::random_constant(Type type, Dims dims, double low, double high) {
  std::vector<double> entries;
  const bool coarse = chance(25);
  for (Index i = 0; i < std::max<Index>(1, count(dims)); ++i) {
    const double e = uniform(low, high);
    entries.push_back(coarse && low < 0 ? std::round(e) : e);
  }
  return constant(type, std::move(dims), entries);
}

namespace {

// A rounding error may be the next step.
bool jumps(const std::string& op) {
  static const std::set<std::string> kSteps = {"Floor", "Ceil", "Round", "Sign"};
  return kSteps.contains(op);
}

// Nothing in float64, or next to it: times a large number it is 0, not what it should be.
bool is_tiny(const Number& e) {
  constexpr double kTiny = 1e-200;
  return std::abs(e.middle()) < kTiny && !(e.is_exact() && sgn(e.exact()) == 0);
}

}  // namespace

std::vector<Value> Builder::add_all(const std::string& op, const std::vector<Value>& inputs,
                                    const Attributes& attributes, int outputs) {
  auto* node = model_.mutable_graph()->add_node();
  node->set_op_type(op);
  node->set_name("n" + std::to_string(++names_));
  std::vector<const Array*> in;
  bool moving = false;
  for (const Value& value : inputs) {
    node->add_input(value.name);
    in.push_back(value.name.empty() ? nullptr : &value.sample);
    moving = moving || value.sample.moving;
  }
  if (op == "Shape" || op == "Size" || op == "EyeLike") moving = false;
  for (const auto& [name, value] : attributes) set_attribute(*node, name, value);
  for (int k = 0; k < outputs; ++k) {
    node->add_output("v" + std::to_string(++names_));
  }
  std::vector<Value> values;
  try {
    std::vector<Array> out = operators().at(op)(Node(*node, opset_, in));
    for (int k = 0; k < outputs; ++k) {
      Array& array = out.at(static_cast<std::size_t>(k));
      array.moving = moving;
      if (array.size() > kMostEntries || array.size() == 0) throw Rejected("the size");
      for (const Number& e : array.entries) {
        if (moving && (!e.is_finite() || std::abs(e.middle()) > kLargest))
          throw Rejected("a value");
        if (e.is_nan()) throw Rejected("no number");
        if (moving && (jumps(op) || is_tiny(e))) tame = false;
      }
      values.push_back({node->output(k), std::move(array)});
    }
  } catch (const Rejected&) {
    throw;
  } catch (const std::exception& error) {
    throw Rejected(op + ": " + error.what());
  }
  return values;
}

void Builder::take_back(const Mark& mark) {
  auto* graph = model_.mutable_graph();
  graph->mutable_node()->DeleteSubrange(mark.nodes, graph->node_size() - mark.nodes);
  graph->mutable_initializer()->DeleteSubrange(mark.initializers,
                                               graph->initializer_size() - mark.initializers);
}

onnx::ModelProto Builder::finish(const Value& output) const {
  onnx::ModelProto model = model_;
  std::set<std::string> wanted{output.name};
  auto* graph = model.mutable_graph();
  std::vector<onnx::NodeProto> nodes;
  for (int k = graph->node_size(); k-- > 0;) {
    const auto& node = graph->node(k);
    bool reaches = false;
    for (const auto& name : node.output()) reaches = reaches || wanted.contains(name);
    if (!reaches) continue;
    wanted.insert(node.input().begin(), node.input().end());
    nodes.push_back(node);
  }
  graph->clear_node();
  for (std::size_t k = nodes.size(); k-- > 0;) *graph->add_node() = nodes[k];
  std::vector<T> stored;
  for (const T& tensor : graph->initializer()) {
    if (wanted.contains(tensor.name())) stored.push_back(tensor);
  }
  graph->clear_initializer();
  for (const T& tensor : stored) *graph->add_initializer() = tensor;
  auto* info = model.mutable_graph()->add_output();
  info->set_name(output.name);
  auto* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(output.type());
  for (const Index d : output.dims()) tensor->mutable_shape()->add_dim()->set_dim_value(d);
  return model;
}

}  // namespace oracle

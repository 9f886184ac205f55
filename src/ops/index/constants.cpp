// SPDX-License-Identifier: Apache-2.0
// Nodes that stand for a constant: Constant, ConstantOfShape, Shape, Size, Range, EyeLike.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graph/exact_map.h"
#include "graph/room.h"
#include "ops/facets/entry_bounds.h"
#include "ops/index/index_map.h"
#include "ops/integer/integers.h"
#include "ops/kind.h"

namespace lipscope {
namespace {

// Such outputs are stored in full at once.
void check_constant_size(const OnnxNode& node, double entries) {
  constexpr double kMostEntries = 1 << 27;
  if (!(entries <= kMostEntries)) node.unsupported(fmt::format("{} entries", entries));
}

Tensor filled(ElementType type, const Shape& shape, double real, Index integer) {
  Tensor tensor = Tensor::zeros(type, shape);
  if (is_floating(type)) {
    std::fill(tensor.doubles().begin(), tensor.doubles().end(), real);
  } else {
    std::fill(tensor.ints().begin(), tensor.ints().end(), integer);
  }
  return tensor;
}

Imported import_constant(const OnnxNode& node) {
  for (const char* name : {"value_string", "value_strings"}) {
    if (node.has(name)) node.unsupported("strings");
  }
  if (node.has("sparse_value")) node.unsupported("sparse tensors");
  if (const Tensor* value = node.tensor("value")) return *value;
  if (node.has("value_float")) {
    return Tensor(ElementType::kFloat32, {}, std::vector<double>{node.real("value_float")});
  }
  if (node.has("value_int")) return Tensor::integers({}, {node.integer("value_int")});
  if (auto list = node.reals("value_floats")) {
    const auto n = static_cast<Index>(list->size());
    return Tensor(ElementType::kFloat32, {n}, std::move(*list));
  }
  if (auto list = node.integers("value_ints")) {
    const auto n = static_cast<Index>(list->size());
    return Tensor::integers({n}, std::move(*list));
  }
  node.malformed("no value");
}

Imported import_constant_of_shape(const OnnxNode& node) {
  const auto shape = node.constant_ints(0);
  for (const Index d : *shape) {
    if (d < 0) node.malformed("the shape is " + to_string(*shape));
  }
  require_room_now(*shape);
  check_constant_size(node, static_cast<double>(element_count(*shape)));
  const Tensor* value = node.tensor("value");
  if (value == nullptr) return Tensor::zeros(ElementType::kFloat32, *shape);
  if (value->size() != 1) node.malformed("value has to have one entry");
  const bool real = is_floating(value->type());
  return filled(value->type(), *shape, value->at(0), real ? 0 : value->ints()[0]);
}

Imported import_shape(const OnnxNode& node) {
  const Shape& in = node.input(0).shape;
  const Index rank = node.rank(0);
  const auto place = [rank](Index v) { return std::clamp<Index>(v < 0 ? v + rank : v, 0, rank); };
  const Index start = place(node.integer("start", 0)), end = place(node.integer("end", rank));
  std::vector<Index> dims;
  for (Index a = start; a < end; ++a) dims.push_back(in[static_cast<std::size_t>(a)]);
  const auto n = static_cast<Index>(dims.size());
  return Tensor::integers({n}, std::move(dims));
}

Imported import_size(const OnnxNode& node) {
  return Tensor::integers({}, {element_count(node.input(0).shape)});
}

// start, start + delta, start + 2 delta, ... Inputs: start and delta.
class RangeOp final : public Op, public ExactMap {
 public:
  RangeOp(ElementType type, Index count) : type_{type, {count}} {}
  std::string_view name() const override { return "Range"; }
  std::vector<ValueType> infer(std::span<const ValueType>) const override { return {type_}; }
  void eval(const EvalArgs& args) const override {
    for_storage(args.out[0].storage, [&](auto zero) {
      using T = decltype(zero);
      for (Index b = 0; b < args.count; ++b) {
        const T start = *args.in[0].template sample<T>(b),
                delta = *args.in[1].template sample<T>(b);
        T* to = args.out[0].template sample<T>(b);
        for (Index i = 0; i < args.out[0].size; ++i) {
          if constexpr (std::is_same_v<T, Index>) {
            to[i] = wrap_integer(type_.type, add_integers(start, multiply_integers(i, delta)));
          } else {
            to[i] = start + static_cast<T>(i) * delta;
          }
        }
      }
    });
  }
  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    if (!is_floating(type_.type)) return std::nullopt;
    const BoxEntries start(in[0]), delta(in[1]);
    BoxBuilder out(type_.shape);
    for (Index i = 0; i < type_.shape[0]; ++i)
      out.set(i, start[0] + static_cast<double>(i) * delta[0]);
    return std::vector<Box>{std::move(out).finish()};
  }
  const ExactMap* exact_map() const override { return is_floating(type_.type) ? this : nullptr; }
  bool push_exact(std::span<const ExactTensor* const> in,
                  std::span<ExactTensor> out) const override {
    for (Index i = 0; i < type_.shape[0]; ++i)
      out[0].push_back((*in[0])[0] + RationalInterval(Rational(BigInteger(i))) * (*in[1])[0]);
    return true;
  }

 private:
  ValueType type_;
};

Rational exact_number(const OnnxNode& node, Index k) {
  const Tensor& value = node.constant(k);
  if (is_floating(value.type())) {
    if (!std::isfinite(value.at(0))) node.malformed("a limit or step that is not finite");
    return Rational(value.at(0));
  }
  const Index whole = value.ints()[0];
  return value.type() == ElementType::kUInt64 ? BigInteger::from_unsigned(bits_of(whole))
                                              : BigInteger(whole);
}

Imported import_range(const OnnxNode& node) {
  const ElementType type = node.input(0).type;
  for (Index k = 0; k < 3; ++k) {
    if (node.input(k).type != type || element_count(node.input(k).shape) != 1) {
      node.malformed("start, limit and delta have to be scalars of one type");
    }
  }
  const Rational start = exact_number(node, 0), limit = exact_number(node, 1);
  const Rational delta = exact_number(node, 2);
  if (delta.sign() == 0) node.malformed("delta is zero");
  const Rational length = std::max(Rational(), Rational(ceil((limit - start) / delta)));
  check_constant_size(node, length.hull().hi);
  // Who runs the model rounds the quotient; a file made for that has another number of entries.
  const double real_start = node.constant(0).at(0), real_limit = node.constant(1).at(0);
  const double rounded = std::ceil((real_limit - real_start) / node.constant(2).at(0));
  if (is_floating(type) && length.hull() != point(std::max(0.0, rounded))) {
    node.unsupported("the number of entries depends on rounding; store the numbers");
  }
  return {std::make_shared<RangeOp>(type, static_cast<Index>(length.hull().hi)), {0, 2}};
}

// ONNX's numbers for element types (TensorProto.DataType).
ElementType element_type(const OnnxNode& node, Index number) {
  switch (number) {
    case 1: return ElementType::kFloat32;
    case 2: return ElementType::kUInt8;
    case 3: return ElementType::kInt8;
    case 4: return ElementType::kUInt16;
    case 5: return ElementType::kInt16;
    case 6: return ElementType::kInt32;
    case 7: return ElementType::kInt64;
    case 9: return ElementType::kBool;
    case 10: return ElementType::kFloat16;
    case 11: return ElementType::kFloat64;
    case 12: return ElementType::kUInt32;
    case 13: return ElementType::kUInt64;
    case 16: return ElementType::kBFloat16;
    default: node.unsupported(fmt::format("element type number {}", number));
  }
}

Imported import_eye_like(const OnnxNode& node) {
  const ValueType& in = node.input(0);
  if (in.shape.size() != 2) node.malformed("the input has to have rank 2");
  require_room_now(in.shape);
  check_constant_size(node, static_cast<double>(element_count(in.shape)));
  const ElementType type = node.has("dtype") ? element_type(node, node.integer("dtype")) : in.type;
  const Index rows = in.shape[0], cols = in.shape[1];
  const Index k = std::clamp<Index>(node.integer("k", 0), -rows, cols);
  Tensor tensor = Tensor::zeros(type, in.shape);
  for (Index i = 0; i < rows; ++i) {
    if (i + k < 0 || i + k >= cols) continue;
    const auto at = static_cast<std::size_t>(i * cols + i + k);
    if (is_floating(type)) {
      tensor.doubles()[at] = 1;
    } else {
      tensor.ints()[at] = 1;
    }
  }
  return tensor;
}

std::vector<OpCase> constant_cases(Rng& rng) {
  return {{.inputs = {}, .attributes = {{"value", random_tensor(rng, {2, 3})}}},
          {.inputs = {}, .attributes = {{"value_float", 1.5}}},
          {.inputs = {}, .attributes = {{"value_int", Index{7}}}},
          {.inputs = {}, .attributes = {{"value_floats", std::vector<double>{1, 2}}}},
          {.inputs = {}, .attributes = {{"value_ints", std::vector<Index>{}}}}};
}

std::vector<OpCase> constant_of_shape_cases(Rng&) {
  return {{.inputs = {fixed_ints({2, 3})}},
          {.inputs = {fixed_ints({})}, .attributes = {{"value", Tensor::integers({1}, {4})}}},
          {.inputs = {fixed_ints({0, 2})}}};
}

std::vector<OpCase> shape_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {2, 3, 4})}}},
          {.inputs = {{random_tensor(rng, {2, 3, 4})}},
           .attributes = {{"start", Index{-2}}, {"end", Index{9}}},
           .opset = 15},
          {.inputs = {{random_tensor(rng, {})}}}};
}

std::vector<OpCase> size_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {2, 3})}}}, {.inputs = {{random_tensor(rng, {})}}}};
}

std::vector<OpCase> range_cases(Rng&) {
  const auto integer = [](Index v) { return OpCase::Input{Tensor::integers({}, {v}), true}; };
  const auto real = [](double v) { return OpCase::Input{Tensor::scalar(v), true}; };
  return {{.inputs = {integer(10), integer(4), integer(-3)}},
          {.inputs = {real(1), real(2.2), real(0.5)}},
          {.inputs = {integer(3), integer(1), integer(1)}}};
}

std::vector<OpCase> eye_like_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {3, 4})}}},
          {.inputs = {{random_tensor(rng, {3, 4})}},
           .attributes = {{"k", Index{-1}}, {"dtype", Index{7}}}}};
}

}  // namespace

std::vector<OpKind> op_constants() {
  return {{"Constant", import_constant, constant_cases},
          {"ConstantOfShape", import_constant_of_shape, constant_of_shape_cases},
          {"Shape", import_shape, shape_cases},
          {"Size", import_size, size_cases},
          {"Range", import_range, range_cases},
          {"EyeLike", import_eye_like, eye_like_cases}};
}

}  // namespace lipscope

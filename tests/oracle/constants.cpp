// SPDX-License-Identifier: Apache-2.0
// Nodes that stand for a constant.
#include <algorithm>

#include "tests/oracle/node.h"

namespace oracle {
namespace {

using T = onnx::TensorProto;

std::vector<Array> constant(const Node& node) {
  if (const auto* a = node.find("value")) return {read_tensor(a->t())};
  if (node.find("value_float") != nullptr)
    return {Array(T::FLOAT, {}, {node.real("value_float", 0)})};
  if (node.find("value_int") != nullptr) return {int64_array({}, {node.integer("value_int", 0)})};
  if (const auto list = node.reals("value_floats")) {
    return {Array(T::FLOAT, {static_cast<Index>(list->size())}, *list)};
  }
  if (const auto list = node.integers("value_ints")) {
    return {int64_array({static_cast<Index>(list->size())}, *list)};
  }
  throw Missing("this kind of Constant");
}

std::vector<Array> constant_of_shape(const Node& node) {
  const auto* a = node.find("value");
  const Array value = a != nullptr ? read_tensor(a->t()) : Array(T::FLOAT, {1});
  Array y(value.type, integers(node.in(0)));
  for (Number& e : y.entries) e = value.at(0);
  return {y};
}

std::vector<Array> shape(const Node& node) {
  const Dims& dims = node.in(0).dims;
  const Index rank = node.in(0).rank();
  const auto cut = [&](Index v) { return std::clamp<Index>(v < 0 ? v + rank : v, 0, rank); };
  const Index start = cut(node.integer("start", 0)), end = cut(node.integer("end", rank));
  const Dims part(dims.begin() + start, dims.begin() + std::max(start, end));
  return {int64_array({static_cast<Index>(part.size())}, part)};
}
std::vector<Array> size(const Node& node) { return {int64_array({}, {node.in(0).size()})}; }

std::vector<Array> range(const Node& node) {
  const Number start = node.in(0).at(0), limit = node.in(1).at(0), delta = node.in(2).at(0);
  const Index n = std::max<Index>(0, ceil((limit - start) / delta).integer());
  constexpr Index kMost = 100000;
  if (n > kMost) throw Missing("a long Range");
  Array y(node.in(0).type, {n});
  for (Index i = 0; i < n; ++i) y.at(i) = wrapped(y.type, start + Number(i) * delta);
  return {y};
}

std::vector<Array> eye_like(const Node& node) {
  const Array& x = node.in(0);
  Array y(static_cast<Type>(node.integer("dtype", x.type)), x.dims);
  const Index k = node.integer("k", 0);
  for_each_index(x.dims,
                 [&](const Dims& at, Index i) { y.at(i) = Number(at[1] - at[0] == k ? 1 : 0); });
  return {y};
}

}  // namespace

void add_constants(Table& table) {
  table["Constant"] = constant;
  table["ConstantOfShape"] = constant_of_shape;
  table["Shape"] = shape;
  table["Size"] = size;
  table["Range"] = range;
  table["EyeLike"] = eye_like;
}

}  // namespace oracle

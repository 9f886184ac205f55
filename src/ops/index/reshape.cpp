// SPDX-License-Identifier: Apache-2.0
// Operators that keep the entries and their order: Identity, Dropout, Reshape, Flatten, Squeeze,
// Unsqueeze.
#include <fmt/format.h>

#include <algorithm>

#include "ops/index/index_map.h"
#include "ops/training.h"

namespace lipscope {
namespace {

Imported import_identity(const OnnxNode& node) {
  node.ignore({"consumed_inputs"});
  return reshape_op(node, node.input(0).shape);
}

Imported import_dropout(const OnnxNode& node) {
  node.ignore({"consumed_inputs"});
  for (const Index k : {Index{1}, Index{2}}) {
    if (node.opset() >= 12 && node.has_input(k) && element_count(node.input(k).shape) != 1) {
      node.malformed("ratio and training_mode have to be scalars");
    }
  }
  if (node.opset() >= 12) {
    node.ignore({"seed"});
    if (node.has_input(2)) (void)node.constant(2);
  } else {
    node.ignore({"ratio"});
  }
  if (const std::string why = training_obstacle(node); !why.empty()) node.unsupported(why);
  const ValueType& in = node.input(0);
  const Index size = element_count(in.shape);
  if (!node.wants_output(1)) return reshape_op(node, in.shape);
  if (node.opset() < 10) node.unsupported("the mask output below opset 10");
  const ValueType mask{ElementType::kBool, in.shape};
  std::vector<IndexMapOp::Output> outputs;
  outputs.push_back({in, IndexMap::identity(size)});
  outputs.push_back({mask, IndexMap::constant(size, size, {1, 1})});
  return std::make_shared<IndexMapOp>(node.type(), std::move(outputs));
}

Imported import_reshape(const OnnxNode& node) {
  node.ignore({"consumed_inputs"});
  const Shape& in = node.input(0).shape;
  const auto given = node.opset() < 5 ? node.integers("shape") : node.constant_ints(1);
  if (!given) node.malformed("the shape is missing");
  Shape shape = *given;
  const bool zero_is_zero = node.integer("allowzero", 0) != 0;
  std::optional<std::size_t> free;
  for (std::size_t a = 0; a < shape.size(); ++a) {
    if (shape[a] == 0 && !zero_is_zero) {
      if (a >= in.size()) node.malformed(fmt::format("axis {} has nothing to copy from", a));
      shape[a] = in[a];
    } else if (shape[a] == -1 && !free) {
      free = a;
    } else if (shape[a] < 0) {
      node.malformed("cannot reshape to " + to_string(*given));
    }
  }
  if (free) {
    shape[*free] = 1;
    const Index rest = element_count(shape), size = element_count(in);
    if (rest == 0 || size % rest != 0) {
      node.malformed(fmt::format("cannot reshape {} to {}", to_string(in), to_string(*given)));
    }
    shape[*free] = size / rest;
  }
  return reshape_op(node, std::move(shape));
}

Imported import_flatten(const OnnxNode& node) {
  const Shape& in = node.input(0).shape;
  const auto rank = static_cast<Index>(in.size());
  Index axis = node.integer("axis", 1);
  if (axis < -rank || axis > rank) node.malformed(fmt::format("axis {} of rank {}", axis, rank));
  if (axis < 0) axis += rank;
  return reshape_op(node, {dims_product(in, 0, axis), dims_product(in, axis, rank)});
}

// The axes argument of Squeeze and Unsqueeze: an attribute below opset 13, an input since.
std::optional<std::vector<Index>> read_squeezed_axes(const OnnxNode& node) {
  return node.opset() < 13 ? node.integers("axes") : node.constant_ints(1);
}

// Which of `rank` axes are named; naming one twice is malformed.
std::vector<bool> marked_axes(const OnnxNode& node, const std::vector<Index>& axes, Index rank) {
  std::vector<bool> marked(static_cast<std::size_t>(rank), false);
  for (const Index given : axes) {
    const auto a = static_cast<std::size_t>(OnnxNode::axis(given, rank));
    if (marked[a]) node.malformed(fmt::format("axis {} is named twice", given));
    marked[a] = true;
  }
  return marked;
}

Imported import_squeeze(const OnnxNode& node) {
  const Shape& in = node.input(0).shape;
  const auto axes = read_squeezed_axes(node);
  Shape shape;
  std::vector<bool> marked;
  if (axes) marked = marked_axes(node, *axes, node.rank(0));
  for (std::size_t a = 0; a < in.size(); ++a) {
    if (axes && marked[a] && in[a] != 1) {
      node.malformed(fmt::format("cannot squeeze axis {} of {}", a, to_string(in)));
    }
    if (axes ? !marked[a] : in[a] != 1) shape.push_back(in[a]);
  }
  return reshape_op(node, std::move(shape));
}

Imported import_unsqueeze(const OnnxNode& node) {
  const Shape& in = node.input(0).shape;
  const auto axes = read_squeezed_axes(node);
  if (!axes) node.malformed("axes is missing");
  const std::vector<bool> marked =
      marked_axes(node, *axes, node.rank(0) + static_cast<Index>(axes->size()));
  Shape shape;
  auto next = in.begin();
  for (const bool is_new : marked) shape.push_back(is_new ? 1 : *next++);
  return reshape_op(node, std::move(shape));
}

std::vector<OpCase> identity_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {2, 3})}}},
          {.inputs = {{random_tensor(rng, {})}}},
          {.inputs = {{random_tensor(rng, {0, 2})}}},
          {.inputs = {{Tensor::integers({2}, {3, -4})}}}};
}

std::vector<OpCase> dropout_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {2, 3})}}, .attributes = {{"ratio", 0.3}}, .opset = 7},
          {.inputs = {{random_tensor(rng, {4})}},
           .attributes = {{"ratio", 0.3}, {"is_test", Index{1}}},
           .opset = 6},
          {.inputs = {{random_tensor(rng, {2, 3})}}, .attributes = {{"seed", Index{3}}}},
          {.inputs = {{random_tensor(rng, {2, 3})}}, .outputs = 2}};
}

std::vector<OpCase> reshape_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {2, 6})}, fixed_ints({3, -1})}},
          {.inputs = {{random_tensor(rng, {2, 3, 4})}, fixed_ints({0, 3, 2, -1})}, .opset = 5},
          {.inputs = {{random_tensor(rng, {1})}, fixed_ints({})}},
          {.inputs = {{random_tensor(rng, {0, 3})}, fixed_ints({3, 0})},
           .attributes = {{"allowzero", Index{1}}},
           .opset = 14},
          {.inputs = {{random_tensor(rng, {2, 6})}},
           .attributes = {{"shape", std::vector<Index>{4, 3}}},
           .opset = 1}};
}

std::vector<OpCase> flatten_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {2, 3, 4})}}},
          {.inputs = {{random_tensor(rng, {2, 3, 4})}}, .attributes = {{"axis", Index{0}}}},
          {.inputs = {{random_tensor(rng, {2, 3, 4})}}, .attributes = {{"axis", Index{-1}}}},
          {.inputs = {{random_tensor(rng, {2, 3, 4})}}, .attributes = {{"axis", Index{3}}}}};
}

std::vector<OpCase> squeeze_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {1, 3, 1})}}},
          {.inputs = {{random_tensor(rng, {1, 3, 1})}, fixed_ints({-1})}},
          {.inputs = {{random_tensor(rng, {1, 3, 1})}},
           .attributes = {{"axes", std::vector<Index>{0}}},
           .opset = 11}};
}

std::vector<OpCase> unsqueeze_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {3, 2})}, fixed_ints({0, -1})}},
          {.inputs = {{random_tensor(rng, {})}, fixed_ints({0})}},
          {.inputs = {{random_tensor(rng, {3, 2})}},
           .attributes = {{"axes", std::vector<Index>{1, 3}}},
           .opset = 1}};
}

}  // namespace

std::vector<OpKind> op_reshape() {
  return {{"Identity", import_identity, identity_cases},
          {"Dropout", import_dropout, dropout_cases},
          {"Reshape", import_reshape, reshape_cases},
          {"Flatten", import_flatten, flatten_cases},
          {"Squeeze", import_squeeze, squeeze_cases},
          {"Unsqueeze", import_unsqueeze, unsqueeze_cases}};
}

}  // namespace lipscope

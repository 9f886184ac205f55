// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/index/index_map.h"

namespace lipscope {
namespace {

void require_planes(const OnnxNode& node, Index rank) {
  if (node.rank(0) < rank) node.malformed("the input has no spatial axes");
}

Imported import_average_pool(const OnnxNode& node) {
  require_planes(node, 3);
  const Shape& in = node.input(0).shape;
  const bool ceil_mode = node.integer("ceil_mode", 0) != 0;
  const bool include_pad = node.integer("count_include_pad", 0) != 0;
  const Window window = read_window(node, std::span(in).subspan(2), {}, ceil_mode);
  Shape shape{in[0], in[1]};
  shape.insert(shape.end(), window.output.begin(), window.output.end());
  check_output_size(node, shape);
  std::vector<double> weights;
  for (const Index n : window_counts(window, include_pad)) {
    if (n == 0) node.unsupported("a window that lies wholly in the padding");
    weights.push_back(1 / static_cast<double>(n));
  }
  return index_map_op(node, std::move(shape),
                      IndexMap::average(lay_out(window), std::move(weights), in[0] * in[1]));
}

Imported import_global_average_pool(const OnnxNode& node) {
  require_planes(node, 2);
  const Shape& in = node.input(0).shape;
  Shape shape(in.size(), 1);
  std::copy_n(in.begin(), 2, shape.begin());
  const Index plane = dims_product(in, 2, node.rank(0));
  if (plane == 0) node.malformed("the average of nothing");
  const Window window{{plane}, {1}, {1}, {0}, {0}, {plane}, {1}};
  return index_map_op(
      node, std::move(shape),
      IndexMap::average(lay_out(window), {1 / static_cast<double>(plane)}, in[0] * in[1]));
}

Attributes pool(std::vector<Index> kernel, Attributes more = {}) {
  more["kernel_shape"] = std::move(kernel);
  return more;
}

std::vector<OpCase> average_pool_cases(Rng& rng) {
  using List = std::vector<Index>;
  const auto input = [&](Shape shape) {
    return std::vector<OpCase::Input>{{random_tensor(rng, std::move(shape))}};
  };
  return {
      {.inputs = input({1, 2, 7}), .attributes = pool({3})},
      {.inputs = input({2, 2, 5, 6}),
       .attributes = pool({3, 2}, {{"strides", List{2, 1}}, {"pads", List{1, 0, 1, 1}}})},
      {.inputs = input({1, 2, 5, 6}),
       .attributes = pool({3, 3}, {{"strides", List{2, 2}},
                                   {"pads", List{1, 1, 1, 1}},
                                   {"count_include_pad", Index{1}},
                                   {"ceil_mode", Index{1}}})},
      {.inputs = input({1, 1, 5, 6}),
       .attributes =
           pool({3, 3}, {{"strides", List{2, 2}}, {"auto_pad", std::string("SAME_UPPER")}})},
      {.inputs = input({1, 1, 5, 5}),
       .attributes = pool({2, 2}, {{"auto_pad", std::string("SAME_LOWER")}})},
      {.inputs = input({1, 1, 5, 5}),
       .attributes = pool({2, 2}, {{"strides", List{2, 2}}, {"auto_pad", std::string("VALID")}})},
      {.inputs = input({1, 1, 4, 5, 6}),
       .attributes = pool({2, 2, 2}, {{"dilations", List{1, 2, 2}}}),
       .opset = 19},
      {.inputs = input({1, 3, 4, 4}), .attributes = pool({4, 4})},
      {.inputs = input({0, 3, 4, 4}), .attributes = pool({2, 2})}};
}

std::vector<OpCase> global_average_pool_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {1, 3, 5, 5})}}},
          {.inputs = {{random_tensor(rng, {2, 2, 3})}}},
          {.inputs = {{random_tensor(rng, {2, 2})}}}};
}

}  // namespace

std::vector<OpKind> op_average_pool() {
  return {{"AveragePool", import_average_pool, average_pool_cases},
          {"GlobalAveragePool", import_global_average_pool, global_average_pool_cases}};
}

}  // namespace lipscope

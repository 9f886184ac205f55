// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast/broadcast.h"

#include <algorithm>

namespace lipscope {

std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const std::size_t shift = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    Index& d = result[shift + i];
    if (d == 1) {
      d = shorter[i];
    } else if (shorter[i] != 1 && shorter[i] != d) {
      return std::nullopt;
    }
  }
  return result;
}

MergedDims merge_dims(const Shape& full, std::span<const Shape> shapes) {
  MergedDims dims;
  dims.stride.resize(shapes.size());
  std::vector<Index> next(shapes.size(), 1);  // stride of the dimension being looked at
  for (std::size_t back = 1; back <= full.size(); ++back) {
    const Index extent = full[full.size() - back];
    std::vector<Index> stride(shapes.size(), 0);
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      if (back > shapes[k].size()) continue;
      const Index own = shapes[k][shapes[k].size() - back];
      LIPSCOPE_CHECK(own == extent || own == 1);
      if (own != 1) stride[k] = next[k];
      next[k] *= own;
    }
    if (extent == 1) continue;
    bool merges = !dims.extent.empty();
    for (std::size_t k = 0; merges && k < shapes.size(); ++k) {
      merges = stride[k] == dims.stride[k].back() * dims.extent.back();
    }
    if (merges) {
      dims.extent.back() *= extent;
      continue;
    }
    dims.extent.push_back(extent);
    for (std::size_t k = 0; k < shapes.size(); ++k) dims.stride[k].push_back(stride[k]);
  }
  std::reverse(dims.extent.begin(), dims.extent.end());
  for (auto& stride : dims.stride) std::reverse(stride.begin(), stride.end());
  return dims;
}

namespace {

Shape aligned_at_axis(const OnnxNode& node, const Shape& first, Shape second) {
  if (node.integer("broadcast", 0) == 0) {
    node.ignore({"axis"});
    return second;
  }
  const auto rank = static_cast<Index>(first.size()), own = static_cast<Index>(second.size());
  if (own > rank) node.malformed("the second operand has more dimensions than the first");
  if (!node.has("axis")) return second;
  const Index axis = own == 0 ? 0 : OnnxNode::axis(node.integer("axis"), rank);
  if (axis + own > rank) node.malformed("the second operand reaches beyond the first");
  if (own != 0) second.resize(static_cast<std::size_t>(rank - axis), 1);
  return second;
}

}  // namespace

Broadcast<2> broadcast_operands(const OnnxNode& node) {
  const Shape& first = node.input(0).shape;
  Shape second = node.input(1).shape;
  node.ignore({"consumed_inputs"});
  if (node.opset() < 7) second = aligned_at_axis(node, first, std::move(second));
  const auto full = broadcast_shape(first, second);
  const bool fits = full && (node.opset() >= 7 || *full == first);
  if (!fits) {
    node.malformed("shapes " + to_string(first) + " and " + to_string(node.input(1).shape) +
                   " do not fit together");
  }
  return {*full, {first, second}};
}

}  // namespace lipscope

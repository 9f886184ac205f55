// SPDX-License-Identifier: Apache-2.0
// Operators that read the input along fixed steps per axis: Transpose, Slice, Expand, Tile,
// DepthToSpace, SpaceToDepth.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ops/index/index_map.h"

namespace lipscope {
namespace {

// Output axes `dims` reading the input by `strides`, seen under `shape`.
Imported strided_op(const OnnxNode& node, Shape shape, const Shape& dims,
                    const std::vector<Index>& strides, Index offset = 0) {
  check_output_size(node, shape);
  return index_map_op(node, std::move(shape),
                      IndexMap::strided(element_count(node.input(0).shape), dims, strides, offset));
}

// The input seen as `split`, its axes reordered by `order`, then seen as `shape`.
Imported reorder(const OnnxNode& node, const Shape& split, const std::vector<Index>& order,
                 Shape shape) {
  const std::vector<Index> from = row_major_strides(split);
  Shape dims;
  std::vector<Index> strides;
  for (const Index a : order) {
    dims.push_back(split[static_cast<std::size_t>(a)]);
    strides.push_back(from[static_cast<std::size_t>(a)]);
  }
  return strided_op(node, std::move(shape), dims, strides);
}

Imported import_transpose(const OnnxNode& node) {
  const Shape& in = node.input(0).shape;
  std::vector<Index> order(in.size());
  std::iota(order.rbegin(), order.rend(), Index{0});
  if (const auto perm = node.integers("perm")) {
    std::vector<Index> sorted = *perm;
    std::sort(sorted.begin(), sorted.end());
    std::reverse(sorted.begin(), sorted.end());
    if (sorted != order) node.malformed("perm is not a permutation of the input's axes");
    order = *perm;
  }
  Shape shape;
  for (const Index a : order) shape.push_back(in[static_cast<std::size_t>(a)]);
  return reorder(node, in, order, std::move(shape));
}

struct SliceArgs {
  std::vector<Index> starts, ends, axes, steps;
};

SliceArgs read_slice(const OnnxNode& node) {
  const bool attributes = node.opset() < 10;
  const auto starts = attributes ? node.integers("starts") : node.constant_ints(1);
  const auto ends = attributes ? node.integers("ends") : node.constant_ints(2);
  auto axes = attributes ? node.integers("axes") : node.constant_ints(3);
  auto steps = attributes ? std::nullopt : node.constant_ints(4);
  if (!starts || !ends) node.malformed("starts or ends is missing");
  if (!axes) {
    axes.emplace(starts->size());
    std::iota(axes->begin(), axes->end(), Index{0});
  }
  if (!steps) steps.emplace(starts->size(), 1);
  if (ends->size() != starts->size() || axes->size() != starts->size() ||
      steps->size() != starts->size()) {
    node.malformed("starts, ends, axes and steps have different lengths");
  }
  return {*starts, *ends, *axes, *steps};
}

Imported import_slice(const OnnxNode& node) {
  const Shape& in = node.input(0).shape;
  const SliceArgs args = read_slice(node);
  Shape shape = in;
  std::vector<Index> strides = row_major_strides(in);
  std::vector<bool> seen(in.size(), false);
  Index offset = 0;
  for (std::size_t i = 0; i < args.axes.size(); ++i) {
    const auto a = static_cast<std::size_t>(OnnxNode::axis(args.axes[i], node.rank(0)));
    if (seen[a]) node.malformed(fmt::format("axis {} is named twice", a));
    seen[a] = true;
    const Index n = in[a];
    if (args.steps[i] == 0) node.malformed("a step of zero");
    const Index step = std::clamp<Index>(args.steps[i], -n - 1, n + 1);  // reaches no less
    const auto from_end = [n](Index v) { return v < 0 ? v + n : v; };
    const Index last = std::max<Index>(0, step > 0 ? n : n - 1);
    const Index start = std::clamp<Index>(from_end(args.starts[i]), 0, last);
    const Index end = std::clamp<Index>(from_end(args.ends[i]), step > 0 ? 0 : -1, last);
    const Index span = step > 0 ? end - start : start - end;
    const Index length = span <= 0 || n == 0 ? 0 : (span + std::abs(step) - 1) / std::abs(step);
    shape[a] = length;
    if (length > 0) offset += start * strides[a];
    strides[a] *= step;
  }
  const Shape dims = shape;
  return strided_op(node, std::move(shape), dims, strides, offset);
}

Imported import_expand(const OnnxNode& node) {
  const Shape& in = node.input(0).shape;
  const auto given = node.constant_ints(1);
  if (!given) node.malformed("the shape is missing");
  const std::size_t rank = std::max(in.size(), given->size());
  const std::vector<Index> from = row_major_strides(in);
  Shape shape(rank, 1);
  std::vector<Index> strides(rank, 0);
  for (std::size_t a = 0; a < rank; ++a) {
    const std::size_t skip_in = rank - in.size(), skip_given = rank - given->size();
    const Index have = a < skip_in ? 1 : in[a - skip_in];
    const Index want = a < skip_given ? 1 : (*given)[a - skip_given];
    if (want < 0 || (have != want && have != 1 && want != 1)) {
      node.malformed(fmt::format("cannot expand {} to {}", to_string(in), to_string(*given)));
    }
    shape[a] = have == 1 ? want : have;
    if (have != 1) strides[a] = from[a - skip_in];
  }
  const Shape dims = shape;
  return strided_op(node, std::move(shape), dims, strides);
}

std::vector<Index> read_repeats(const OnnxNode& node) {
  const auto given = node.constant_ints(1);
  if (!given) node.malformed("repeats is missing");
  if (node.opset() >= 6) return *given;
  const auto axis = node.constant_ints(2);
  if (!axis || axis->size() != 1 || given->size() != 1) node.malformed("tiles or axis is missing");
  std::vector<Index> repeats(node.input(0).shape.size(), 1);
  repeats[static_cast<std::size_t>(OnnxNode::axis((*axis)[0], node.rank(0)))] = (*given)[0];
  return repeats;
}

Imported import_tile(const OnnxNode& node) {
  const Shape& in = node.input(0).shape;
  const std::vector<Index> repeats = read_repeats(node), from = row_major_strides(in);
  if (repeats.size() != in.size()) node.malformed("repeats does not have one entry per axis");
  Shape shape, dims;
  std::vector<Index> strides;
  for (std::size_t a = 0; a < in.size(); ++a) {
    constexpr Index kMostRepeats = Index{1} << 31;
    if (repeats[a] < 0 || repeats[a] > kMostRepeats) {
      node.malformed(fmt::format("{} repeats", repeats[a]));
    }
    shape.push_back(element_count({in[a], repeats[a]}));
    dims.insert(dims.end(), {repeats[a], in[a]});
    strides.insert(strides.end(), {0, from[a]});
  }
  return strided_op(node, std::move(shape), dims, strides);
}

struct BlockArgs {
  Index n, c, h, w, side;
};

BlockArgs read_block(const OnnxNode& node) {
  const Shape& in = node.input(0).shape;
  if (in.size() != 4) node.malformed("the input has to have rank 4");
  const Index side = node.integer("blocksize");
  if (side < 1 || side > (1 << 15)) node.malformed(fmt::format("blocksize is {}", side));
  return {in[0], in[1], in[2], in[3], side};
}

Imported import_depth_to_space(const OnnxNode& node) {
  const auto [n, c, h, w, s] = read_block(node);
  const std::string mode = node.text("mode", "DCR");
  if (c % (s * s) != 0) node.malformed(fmt::format("{} channels, blocksize {}", c, s));
  const Index d = c / (s * s);
  const Shape shape{n, d, h * s, w * s};
  if (mode == "DCR") return reorder(node, {n, s, s, d, h, w}, {0, 3, 4, 1, 5, 2}, shape);
  if (mode == "CRD") return reorder(node, {n, d, s, s, h, w}, {0, 1, 4, 2, 5, 3}, shape);
  node.malformed("mode is '" + mode + "'");
}

Imported import_space_to_depth(const OnnxNode& node) {
  const auto [n, c, h, w, s] = read_block(node);
  if (h % s != 0 || w % s != 0) node.malformed(fmt::format("{}x{}, blocksize {}", h, w, s));
  return reorder(node, {n, c, h / s, s, w / s, s}, {0, 3, 5, 1, 2, 4},
                 {n, c * s * s, h / s, w / s});
}

std::vector<OpCase> transpose_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {2, 3, 4})}}},
          {.inputs = {{random_tensor(rng, {2, 3, 4})}},
           .attributes = {{"perm", std::vector<Index>{1, 0, 2}}}},
          {.inputs = {{random_tensor(rng, {2, 1, 4, 2})}},
           .attributes = {{"perm", std::vector<Index>{0, 2, 3, 1}}}},
          {.inputs = {{random_tensor(rng, {})}}}};
}

std::vector<OpCase> slice_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {4, 5})}, fixed_ints({1, 0}), fixed_ints({3, 1000})}},
          {.inputs = {{random_tensor(rng, {4, 5})},
                      fixed_ints({-1}),
                      fixed_ints({INT64_MIN}),
                      fixed_ints({1}),
                      fixed_ints({-2})}},
          {.inputs = {{random_tensor(rng, {4, 5})},
                      fixed_ints({3}),
                      fixed_ints({1}),
                      fixed_ints({0}),
                      fixed_ints({1})}},
          {.inputs = {{random_tensor(rng, {3, 4, 5})},
                      fixed_ints({0, 10}),
                      fixed_ints({4, 0}),
                      fixed_ints({0, -1}),
                      fixed_ints({3, -1})}},
          {.inputs = {{random_tensor(rng, {0, 5})},
                      fixed_ints({0}),
                      fixed_ints({-9}),
                      fixed_ints({0}),
                      fixed_ints({-1})}},
          {.inputs = {{random_tensor(rng, {4, 5})}},
           .attributes = {{"starts", std::vector<Index>{-3}},
                          {"ends", std::vector<Index>{-1}},
                          {"axes", std::vector<Index>{1}}},
           .opset = 1}};
}

std::vector<OpCase> expand_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {3, 1})}, fixed_ints({2, 1, 4})}},
          {.inputs = {{random_tensor(rng, {3, 1})}, fixed_ints({1})}},
          {.inputs = {{random_tensor(rng, {1, 3})}, fixed_ints({0, 3})}},
          {.inputs = {{random_tensor(rng, {})}, fixed_ints({2, 2})}}};
}

std::vector<OpCase> tile_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {2, 3})}, fixed_ints({2, 2})}},
          {.inputs = {{random_tensor(rng, {2, 1, 3})}, fixed_ints({1, 4, 1})}},
          {.inputs = {{random_tensor(rng, {2, 3})}, fixed_ints({0, 1})}},
          {.inputs = {{random_tensor(rng, {2, 3})}, fixed_ints({3}), fixed_ints({1})}, .opset = 1}};
}

std::vector<OpCase> depth_to_space_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {1, 8, 2, 3})}}, .attributes = {{"blocksize", Index{2}}}},
          {.inputs = {{random_tensor(rng, {2, 8, 2, 1})}},
           .attributes = {{"blocksize", Index{2}}, {"mode", std::string("CRD")}}}};
}

std::vector<OpCase> space_to_depth_cases(Rng& rng) {
  return {
      {.inputs = {{random_tensor(rng, {1, 2, 4, 6})}}, .attributes = {{"blocksize", Index{2}}}}};
}

}  // namespace

std::vector<OpKind> op_rearrange() {
  return {{"Transpose", import_transpose, transpose_cases},
          {"Slice", import_slice, slice_cases},
          {"Expand", import_expand, expand_cases},
          {"Tile", import_tile, tile_cases},
          {"DepthToSpace", import_depth_to_space, depth_to_space_cases},
          {"SpaceToDepth", import_space_to_depth, space_to_depth_cases}};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Operators that pick entries by a rule known beforehand: Trilu, Compress, ReverseSequence.
#include <fmt/format.h>

#include <algorithm>

#include "ops/index/index_map.h"

namespace lipscope {
namespace {

Imported import_trilu(const OnnxNode& node) {
  const Shape& in = node.input(0).shape;
  const Index rank = node.rank(0);
  if (rank < 2) node.malformed("the input has to have rank 2 or more");
  const bool upper = node.integer("upper", 1) != 0;
  const Index m = in[in.size() - 2], n = in[in.size() - 1];
  const auto given = node.constant_ints(1);
  if (given && given->size() != 1) node.malformed("k has to be a scalar");
  const Index k = given ? std::clamp<Index>(given->front(), -m - 1, n + 1) : 0;
  std::vector<Index> sources;
  sources.reserve(static_cast<std::size_t>(m * n));
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      const bool keep = upper ? j - i >= k : j - i <= k;
      sources.push_back(keep ? i * n + j : -1);
    }
  }
  return index_map_op(node, in,
                      IndexMap::gather(m * n, sources, {dims_product(in, 0, rank - 2), 1}));
}

Imported import_compress(const OnnxNode& node) {
  const Shape& in = node.input(0).shape;
  const auto condition = node.constant_ints(1);
  if (!condition) node.malformed("the condition is missing");
  const bool flat = !node.has("axis");
  const Index axis = flat ? 0 : OnnxNode::axis(node.integer("axis"), node.rank(0));
  const Index length = flat ? element_count(in) : in[static_cast<std::size_t>(axis)];
  if (static_cast<Index>(condition->size()) > length) node.malformed("the condition is too long");
  std::vector<Index> sources;
  for (std::size_t i = 0; i < condition->size(); ++i) {
    if ((*condition)[i] != 0) sources.push_back(static_cast<Index>(i));
  }
  const auto kept = static_cast<Index>(sources.size());
  if (flat) return index_map_op(node, {kept}, IndexMap::gather(length, sources));
  Shape shape = in;
  shape[static_cast<std::size_t>(axis)] = kept;
  const IndexMap::Blocks blocks{dims_product(in, 0, axis),
                                dims_product(in, axis + 1, node.rank(0))};
  return index_map_op(node, std::move(shape), IndexMap::gather(length, sources, blocks));
}

Imported import_reverse_sequence(const OnnxNode& node) {
  const Shape& in = node.input(0).shape;
  if (node.rank(0) < 2) node.malformed("the input has to have rank 2 or more");
  const Index time_axis = node.integer("time_axis", 0), batch_axis = node.integer("batch_axis", 1);
  if (time_axis + batch_axis != 1 || time_axis * batch_axis != 0) {
    node.malformed("time_axis and batch_axis have to be 0 and 1");
  }
  const auto lengths = node.constant_ints(1);
  const Index times = in[static_cast<std::size_t>(time_axis)];
  const Index batches = in[static_cast<std::size_t>(batch_axis)];
  if (!lengths || static_cast<Index>(lengths->size()) != batches) {
    node.malformed("sequence_lens does not have one entry per sequence");
  }
  std::vector<Index> sources;
  for (Index i = 0; i < in[0]; ++i) {
    for (Index j = 0; j < in[1]; ++j) {
      const Index time = time_axis == 0 ? i : j, batch = time_axis == 0 ? j : i;
      const Index length = (*lengths)[static_cast<std::size_t>(batch)];
      if (length < 0 || length > times) node.malformed(fmt::format("a sequence of {}", length));
      const Index from = time < length ? length - 1 - time : time;
      sources.push_back(time_axis == 0 ? from * in[1] + j : i * in[1] + from);
    }
  }
  const IndexMap::Blocks blocks{1, dims_product(in, 2, node.rank(0))};
  return index_map_op(node, in, IndexMap::gather(in[0] * in[1], sources, blocks));
}

std::vector<OpCase> trilu_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {3, 4})}}, .opset = 14},
          {.inputs = {{random_tensor(rng, {2, 3, 3})}, fixed_ints({-1})},
           .attributes = {{"upper", Index{0}}},
           .opset = 14},
          {.inputs = {{random_tensor(rng, {4, 2})}, fixed_ints({1})}, .opset = 14}};
}

std::vector<OpCase> compress_cases(Rng& rng) {
  const Tensor condition(ElementType::kBool, {3}, std::vector<Index>{1, 0, 1});
  return {{.inputs = {{random_tensor(rng, {2, 3})}, {condition, true}}},
          {.inputs = {{random_tensor(rng, {2, 3})}, {condition, true}},
           .attributes = {{"axis", Index{-1}}}}};
}

std::vector<OpCase> reverse_sequence_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {4, 2, 2})}, fixed_ints({3, 1})}},
          {.inputs = {{random_tensor(rng, {2, 4})}, fixed_ints({2, 4})},
           .attributes = {{"time_axis", Index{1}}, {"batch_axis", Index{0}}}}};
}

}  // namespace

std::vector<OpKind> op_select() {
  return {{"Trilu", import_trilu, trilu_cases},
          {"Compress", import_compress, compress_cases},
          {"ReverseSequence", import_reverse_sequence, reverse_sequence_cases}};
}

}  // namespace lipscope

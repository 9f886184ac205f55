// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/index/index_map.h"

namespace lipscope {
namespace {

struct PadArgs {
  std::vector<Index> begin, end;  // per axis of the input
  std::string mode;
  IndexMap::Fill fill;
};

PadArgs read_pad(const OnnxNode& node) {
  const auto rank = static_cast<std::size_t>(node.rank(0));
  PadArgs args{std::vector<Index>(rank, 0),
               std::vector<Index>(rank, 0),
               node.text("mode", "constant"),
               {0, 0}};
  std::optional<std::vector<Index>> pads, axes;
  if (node.opset() < 11) {
    pads = node.integers(node.opset() < 2 ? "paddings" : "pads");
    args.fill.real = node.real("value");
    args.fill.integer = static_cast<Index>(args.fill.real);
  } else {
    pads = node.constant_ints(1);
    axes = node.constant_ints(3);
    if (node.has_input(2) && element_count(node.input(2).shape) > 0) {
      const Tensor& value = node.constant(2);
      args.fill.real = value.at(0);
      args.fill.stored = node.is_stored(2);
      if (!is_floating(value.type())) args.fill.integer = value.ints()[0];
    }
  }
  const std::size_t named = axes ? axes->size() : rank;
  if (!pads || pads->size() != 2 * named) node.malformed("pads does not fit the axes");
  std::vector<bool> seen(rank, false);
  for (std::size_t i = 0; i < named; ++i) {
    const auto a = axes ? static_cast<std::size_t>(OnnxNode::axis((*axes)[i], node.rank(0))) : i;
    if (seen[a]) node.malformed(fmt::format("axis {} is named twice", a));
    seen[a] = true;
    args.begin[a] = (*pads)[i];
    args.end[a] = (*pads)[i + named];
  }
  return args;
}

// What an axis of length n becomes.
Index padded_length(const OnnxNode& node, const std::string& mode, Index n, Index begin,
                    Index end) {
  constexpr Index kMost = Index{1} << 24;
  const Index low = std::max<Index>(0, -begin), high = n + std::min<Index>(0, end);
  const Index left = high - low;
  if (std::abs(begin) > kMost || std::abs(end) > kMost || left < 0) {
    node.malformed(fmt::format("an axis of length {} padded by {} and {}", n, begin, end));
  }
  const Index more = std::max<Index>(0, begin) + std::max<Index>(0, end);
  if (left == 0 && mode != "constant" && more > 0) {
    node.malformed(fmt::format("{} padding of an empty axis", mode));
  }
  return left + more;
}

// For each output position of an axis of length n the input position, or -1. Negative pads crop
// first; what is left is then padded.
std::vector<Index> pad_axis(const std::string& mode, Index n, Index begin, Index end) {
  const Index low = std::max<Index>(0, -begin), left = n + std::min<Index>(0, end) - low;
  const Index before = std::max<Index>(0, begin), after = std::max<Index>(0, end);
  const auto modulo = [](Index i, Index period) { return ((i % period) + period) % period; };
  std::vector<Index> sources;
  for (Index i = -before; i < left + after; ++i) {
    Index at = i;
    if (i < 0 || i >= left) {
      if (mode == "constant") {
        sources.push_back(-1);
        continue;
      }
      if (mode == "edge") {
        at = std::clamp<Index>(i, 0, left - 1);
      } else if (mode == "wrap") {
        at = modulo(i, left);
      } else {
        const Index turn = left - 1, folded = turn == 0 ? 0 : modulo(i, 2 * turn);
        at = folded <= turn ? folded : 2 * turn - folded;
      }
    }
    sources.push_back(low + at);
  }
  return sources;
}

Imported import_pad(const OnnxNode& node) {
  const Shape& in = node.input(0).shape;
  const PadArgs args = read_pad(node);
  if (args.mode != "constant" && args.mode != "reflect" && args.mode != "edge" &&
      args.mode != "wrap") {
    node.malformed("mode is '" + args.mode + "'");
  }
  const Index rank = node.rank(0);
  Index first = rank, last = 0;
  Shape shape = in;
  for (Index a = 0; a < rank; ++a) {
    const auto i = static_cast<std::size_t>(a);
    if (args.begin[i] == 0 && args.end[i] == 0) continue;
    first = std::min(first, a);
    last = a + 1;
    shape[i] = padded_length(node, args.mode, in[i], args.begin[i], args.end[i]);
  }
  if (last == 0) return reshape_op(node, in);
  check_output_size(node, shape);
  std::vector<Index> sources{0};
  for (Index a = first; a < last; ++a) {
    const auto i = static_cast<std::size_t>(a);
    const auto axis = pad_axis(args.mode, in[i], args.begin[i], args.end[i]);
    std::vector<Index> next;
    next.reserve(sources.size() * axis.size());
    for (const Index s : sources) {
      for (const Index t : axis) next.push_back(s < 0 || t < 0 ? -1 : s * in[i] + t);
    }
    sources = std::move(next);
  }
  const IndexMap::Blocks blocks{dims_product(in, 0, first), dims_product(in, last, rank)};
  IndexMap map = IndexMap::gather(dims_product(in, first, last), sources, blocks, args.fill);
  const ValueType out{node.input(0).type, std::move(shape)};
  return {std::make_shared<const IndexMapOp>(
              "Pad", std::vector<IndexMapOp::Output>{{out, std::move(map)}},
              Padding{args.begin, args.end, args.mode, args.fill.real}),
          {0}};
}

std::vector<OpCase> pad_cases(Rng& rng) {
  const auto mode = [](const char* name) { return Attributes{{"mode", std::string(name)}}; };
  const auto input = [&] { return OpCase::Input{random_tensor(rng, {2, 3, 4})}; };
  const OpCase::Input pads = fixed_ints({0, 1, 2, 0, 0, 3});
  return {{.inputs = {input(), pads}},
          {.inputs = {input(), pads, {Tensor::scalar(1.5), true}}},
          {.inputs = {input(), pads}, .attributes = mode("reflect")},
          {.inputs = {input(), pads}, .attributes = mode("edge")},
          {.inputs = {input(), pads}, .attributes = mode("wrap"), .opset = 19},
          {.inputs = {input(), fixed_ints({0, -1, 2, 1, 0, -1})}},
          {.inputs = {input(), fixed_ints({0, 0, -2, 0, 0, 1})}, .attributes = mode("reflect")},
          {.inputs = {input(), fixed_ints({1, 2}), {Tensor::scalar(-1), true}, fixed_ints({-2})},
           .opset = 18},
          {.inputs = {input()},
           .attributes = {{"pads", std::vector<Index>{0, 0, 1, 0, 0, 1}}, {"value", 2.0}},
           .opset = 2},
          {.inputs = {input()},
           .attributes = {{"paddings", std::vector<Index>{0, 1, 0, 0, 1, 0}}},
           .opset = 1},
          {.inputs = {{Tensor::integers({2}, {1, 2})}, fixed_ints({1, 1}), fixed_ints({7})}}};
}

}  // namespace

std::optional<Padding> as_padding(const Op& op) {
  const IndexMapOp* map = op.index_map();
  return map != nullptr ? map->padding() : std::nullopt;
}

std::vector<OpKind> op_pad() { return {{"Pad", import_pad, pad_cases}}; }

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "passes/split_softmax.h"

#include <algorithm>

#include "base/interval.h"
#include "ops/rows/softmax_pairs.h"
#include "ops/rows/softmax_rows.h"
#include "passes/add_node.h"

namespace lipscope {
namespace {

constexpr std::size_t kMostPairs = 2500;

struct SoftmaxEnd {
  const Node* node = nullptr;
  std::vector<bool> needed;  // the entries of its result that the output depends on
};

Box box_of_input(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (value.constant) return value.constant->box();
  Tensor zero = Tensor::zeros(ElementType::kFloat64, value.type.shape);
  Box box{zero, std::move(zero)};
  std::ranges::fill(box.lower.doubles(), -kInf);
  std::ranges::fill(box.upper.doubles(), kInf);
  return box;
}

// From the output back through nodes with one input that moves.
std::optional<SoftmaxEnd> softmax_end(const Graph& graph) {
  ValueId at = graph.outputs()[0];
  const auto entries = [&](ValueId id) {
    return static_cast<std::size_t>(element_count(graph.value(id).type.shape));
  };
  std::vector<bool> needed(entries(at), true);
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    if (node.outputs[0] != at) continue;
    if (single_softmax(*node.op)) return SoftmaxEnd{&node, std::move(needed)};
    const auto moves = [&](ValueId id) { return !graph.value(id).constant; };
    if (std::ranges::count_if(node.inputs, moves) != 1) return std::nullopt;
    const auto input = std::ranges::find_if(node.inputs, moves);
    std::vector<Box> boxes;
    for (const ValueId id : node.inputs) boxes.push_back(box_of_input(graph, id));
    std::vector<bool> before(entries(*input));
    const auto visit = [&](Index row, Index column, double low, double high) {
      if (needed[static_cast<std::size_t>(row)] && (low != 0 || high != 0))
        before[static_cast<std::size_t>(column)] = true;
    };
    if (!node.op->matrix({boxes, static_cast<Index>(input - node.inputs.begin()), 0}, visit))
      return std::nullopt;
    needed = std::move(before);
    at = *input;
  }
  return std::nullopt;
}

// Those that move an entry which is needed.
std::vector<SoftmaxPair> pairs_of(const std::vector<bool>& needed, bool log) {
  std::vector<SoftmaxPair> pairs;
  const Index n = std::ssize(needed);
  const auto is_needed = [&](Index i) { return needed[static_cast<std::size_t>(i)]; };
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      const bool kept = log ? i != j && is_needed(j) : i < j && (is_needed(i) || is_needed(j));
      if (kept) pairs.push_back({i, j});
    }
  }
  return pairs;
}

}  // namespace

std::optional<Graph> split_softmax(const Graph& graph) {
  if (graph.outputs().empty()) return std::nullopt;
  const auto end = softmax_end(graph);
  if (!end) return std::nullopt;
  const bool log = single_softmax(*end->node->op) == SoftmaxResult::kLogarithms;
  const std::vector<SoftmaxPair> pairs = pairs_of(end->needed, log);
  if (pairs.empty() || pairs.size() > kMostPairs) return std::nullopt;
  const Index classes = std::ssize(end->needed), count = std::ssize(pairs);
  const auto place = [](Index row, Index width, Index column) {
    return static_cast<std::size_t>(row * width + column);
  };
  std::vector<double> differences(place(classes, count, 0)), sums(place(count, classes, 0));
  for (Index u = 0; u < count; ++u) {
    const auto [plus, minus] = pairs[static_cast<std::size_t>(u)];
    differences[place(plus, count, u)] = 1;
    differences[place(minus, count, u)] = -1;
    if (!log) sums[place(u, classes, plus)] = 1;
    sums[place(u, classes, minus)] = -1;
  }
  const ValueType& type = graph.value(end->node->inputs[0]).type;
  return rewrite_nodes(graph, [&](const Node& node, const MappedValue& mapped, GraphBuilder& b) {
    if (&node != end->node) return std::vector<ValueId>{};
    const auto weights = [&](const char* name, const Shape& shape, std::vector<double> entries) {
      return b.constant(node.name + name, Tensor(type.type, shape, std::move(entries)));
    };
    const ValueId flat = reshaped(b, mapped(node.inputs[0]), {1, classes});
    const ValueId apart =
        add_node(b, "MatMul", {flat, weights("/c", {classes, count}, differences)},
                 node.name + "/differences");
    const ValueId units =
        b.add(make_softmax_pairs(log, classes, pairs), {apart}, node.name + "/pairs")[0];
    const ValueId together =
        add_node(b, "MatMul", {units, weights("/r", {count, classes}, sums)}, node.name + "/sums");
    return std::vector<ValueId>{reshaped(b, together, type.shape)};
  });
}

}  // namespace lipscope

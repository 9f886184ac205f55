// SPDX-License-Identifier: Apache-2.0
#include "robust/last_layer.h"

#include <algorithm>
#include <cmath>

#include "base/rounding_sums.h"
#include "bounds/boxes.h"
#include "graph/copier.h"
#include "linalg/norm/norm_map.h"
#include "net/limits.h"
#include "net/small.h"

namespace lipscope {
namespace {

// By value: whether it depends on an input.
std::vector<bool> moving_values(const Graph& graph) {
  std::vector<bool> moves(graph.values().size());
  for (const ValueId id : graph.inputs()) moves[id.index] = true;
  for (const Node& node : graph.nodes()) {
    const bool any = std::ranges::any_of(node.inputs, [&](ValueId id) { return moves[id.index]; });
    for (const ValueId id : node.outputs) moves[id.index] = moves[id.index] || any;
  }
  return moves;
}

void visit_row(const RowMatrix& rows, Index i, double sign, const VisitEntry& visit) {
  rows.for_row(i, [&](Index column, std::size_t at) {
    const double w = sign * rows.weights[at], r = rows.radius_at(at);
    visit(0, column, r == 0 ? w : sub_down(w, r), r == 0 ? w : add_up(w, r));
  });
}

}  // namespace

std::optional<LastLayer> split_last_layer(const Graph& graph) {
  const ValueId end = graph.outputs()[0];
  const auto last = std::ranges::find_if(graph.nodes(), [&](const Node& node) {
    return !node.outputs.empty() && node.outputs[0] == end;
  });
  if (last == graph.nodes().end()) return std::nullopt;
  const std::vector<bool> moves = moving_values(graph);
  std::optional<std::size_t> wrt;
  for (std::size_t k = 0; k < last->inputs.size(); ++k) {
    if (!moves[last->inputs[k].index]) continue;
    if (wrt) return std::nullopt;
    wrt = k;
  }
  if (!wrt || !is_floating(graph.value(last->inputs[*wrt]).type.type)) return std::nullopt;
  const Index rows = element_count(graph.value(end).type.shape);
  const Index cols = element_count(graph.value(last->inputs[*wrt]).type.shape);
  if (rows * cols > kMostMapWeights) return std::nullopt;
  ValueBoxes boxes(graph, input_boxes(graph, {}));
  std::vector<Box> in;
  for (const ValueId id : last->inputs) in.push_back(boxes.at(id));
  const MatrixQuery query{in, static_cast<Index>(*wrt), 0};
  bool affine = true;
  RowMatrix found = collect_rows(rows, cols, [&](const VisitEntry& visit) {
    affine = affine && last->op->matrix(query, visit);
  });
  const auto finite = [](const std::vector<double>& list) {
    return std::ranges::all_of(list, [](double w) { return std::isfinite(w); });
  };
  if (!affine || !finite(found.weights) || !finite(found.radius)) return std::nullopt;
  return LastLayer{graph_part(graph, graph.inputs(), std::span(&last->inputs[*wrt], 1)),
                   std::move(found)};
}

RowMatrix row_difference(const RowMatrix& rows, Index i, Index j) {
  return collect_rows(1, rows.cols, [&](const VisitEntry& visit) {
    visit_row(rows, i, 1, visit);
    visit_row(rows, j, -1, visit);
  });
}

double difference_norm_up(const RowMatrix& rows, Index i, Index j, const Norm& norm) {
  const RowMatrix row = row_difference(rows, i, j);
  std::vector<double> sizes;
  for (std::size_t k = 0; k < row.weights.size(); ++k)
    sizes.push_back(add_up(std::fabs(row.weights[k]), row.radius_at(k)));
  // A smaller exponent makes the norm larger.
  const double dual = norm == Norm::infinity() ? 1
                      : norm.p() == 1          ? kInf
                                               : dual_exponent(norm.p()).lo;
  return pnorm_up(sizes, dual);
}

}  // namespace lipscope

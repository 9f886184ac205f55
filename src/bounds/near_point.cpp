// SPDX-License-Identifier: Apache-2.0
#include "bounds/near_point.h"

#include <algorithm>
#include <cmath>

#include "ops/box.h"

namespace lipscope {
namespace {

double distance_up(std::span<const double> middle, const DerivativeBoxes::Row& row) {
  std::vector<double> far;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!is_bounded(row[i]) || !std::isfinite(middle[i])) return kInf;
    far.push_back(std::max({sub_up(row[i].hi, middle[i]), sub_up(middle[i], row[i].lo), 0.0}));
  }
  return norm2_up(far);
}

DerivativeBoxes::Row entries_of_box(const Box& box) {
  DerivativeBoxes::Row row;
  for (Index i = 0; i < box.lower.size(); ++i) row.push_back(entry(box, i));
  return row;
}

std::vector<double> middles(const DerivativeBoxes::Row& row) {
  std::vector<double> out;
  for (const Interval& x : row) out.push_back(midpoint(x));
  return out;
}

// What is within a distance of a number and in the interval.
Interval within(const Interval& x, double middle, double off) {
  if (!std::isfinite(off) || !std::isfinite(middle)) return x;
  const Interval both = intersect(x, {sub_down(middle, off), add_up(middle, off)});
  return is_nan(both) ? x : both;
}

// Of the matrix of an output that is affine in input k: the root of the largest row sum times the
// largest column sum of absolute values. Infinity where it is no such function.
double schur_gain_up(const Node& node, const MatrixQuery& query, Index rows, Index cols) {
  std::vector<double> by_row(static_cast<std::size_t>(rows)),
      by_col(static_cast<std::size_t>(cols));
  const bool known = node.op->matrix(query, [&](Index i, Index j, double lo, double hi) {
    const double size = magnitude({lo, hi});
    double &row = by_row[static_cast<std::size_t>(i)], &col = by_col[static_cast<std::size_t>(j)];
    row = add_up(row, size);
    col = add_up(col, size);
  });
  if (!known || rows == 0 || cols == 0) return known ? 0 : kInf;
  const double gain =
      sqrt_up(gain_mul_up(*std::ranges::max_element(by_row), *std::ranges::max_element(by_col)));
  return std::isnan(gain) ? kInf : gain;
}

}  // namespace

NearPoint::NearPoint(const Graph& graph, std::span<const Box> inputs)
    : graph_(graph), derivative_(graph, inputs), values_(graph.values().size()) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = graph.inputs()[i];
    if (!is_floating(graph.value(id).type.type)) continue;
    const Row row = entries_of_box(inputs[i]);
    values_[id.index].middle = middles(row);
    values_[id.index].off = distance_up(values_[id.index].middle, row);
  }
}

// Boxes of the inputs of a node with the middles in them and the true values inside.
std::vector<Box> NearPoint::inflated_boxes(const Node& node) {
  std::vector<Box> boxes;
  for (const ValueId id : node.inputs) {
    Box box = derivative_.values().at(id);
    if (!graph_.value(id).constant && is_floating(graph_.value(id).type.type)) {
      std::vector<double> low, high;
      for (Index i = 0; i < box.lower.size(); ++i) {
        const double middle = values_[id.index].middle[static_cast<std::size_t>(i)];
        const Interval x = hull(entry(box, i), point(middle));
        low.push_back(sub_down(x.lo, kMinSubnormal));
        high.push_back(add_up(x.hi, kMinSubnormal));
      }
      box = make_box(box.lower.shape(), std::move(low), std::move(high));
    }
    boxes.push_back(std::move(box));
  }
  return boxes;
}

double NearPoint::gain(const Node& node, std::size_t k, std::size_t output) {
  const auto key = std::tuple(&node, k, output);
  if (const auto known = gains_.find(key); known != gains_.end()) return known->second;
  const std::vector<Box> boxes = inflated_boxes(node);
  double found = kInf;
  if (output == 0) {
    const auto told = node.op->gain(
        {.norms = {Norm(2), Norm(2)}, .in = boxes, .wrt = static_cast<Index>(k), .quick = true});
    if (told && !std::isnan(told->value)) found = told->value;
  } else {
    found = schur_gain_up(node, {boxes, static_cast<Index>(k), static_cast<Index>(output)},
                          element_count(graph_.value(node.outputs[output]).type.shape),
                          element_count(graph_.value(node.inputs[k]).type.shape));
  }
  return gains_[key] = found;
}

// The first output at given inputs of a node that is affine in one of them, the others constant:
// its matrix times that input, carefully, and what it is at zero.
std::optional<DerivativeBoxes::Row> NearPoint::affine_value(const Node& node,
                                                            std::vector<Box> points) {
  std::optional<std::size_t> moving;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (graph_.value(node.inputs[k]).constant) continue;
    if (moving) return std::nullopt;
    moving = k;
  }
  const auto is_affine = [&] {
    return node.op->matrix({points, static_cast<Index>(*moving), 0},
                           [](Index, Index, double, double) {});
  };
  if (!moving || node.outputs.size() != 1 || !is_affine()) return std::nullopt;
  DerivativeBoxes::Rows rows;
  rows[node.inputs[*moving].index] = entries_of_box(points[*moving]);
  if (!derivative_.push_node(node, rows, true)) return std::nullopt;
  Box& at = points[*moving];
  at = make_box(at.lower.shape(), std::vector<double>(static_cast<std::size_t>(at.lower.size())),
                std::vector<double>(static_cast<std::size_t>(at.lower.size())));
  const auto zero = node.op->range(points);
  if (!zero) return std::nullopt;
  Row value = std::move(rows.at(node.outputs[0].index));
  const Row offset = entries_of_box((*zero)[0]);
  for (std::size_t i = 0; i < value.size(); ++i) value[i] += offset[i];
  return value;
}

void NearPoint::find_value(const Node& node) {
  std::vector<Box> points;
  bool known = true;
  for (const ValueId id : node.inputs) {
    const Value& value = graph_.value(id);
    const bool moves = !value.constant && is_floating(value.type.type);
    known = known && (moves || value.constant);
    points.push_back(
        moves ? make_box(value.type.shape, values_[id.index].middle, values_[id.index].middle)
              : derivative_.values().at(id));
  }
  const auto range = known ? node.op->range(points) : std::nullopt;
  const auto affine = known ? affine_value(node, points) : std::nullopt;
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    const ValueId id = node.outputs[o];
    if (!is_floating(graph_.value(id).type.type)) continue;
    const Row all = entries_of_box(derivative_.values().at(id));
    Near& near = values_[id.index];
    near.middle = middles(all);
    near.off = distance_up(near.middle, all);
    if (!range) continue;
    Row here = entries_of_box((*range)[o]);
    for (std::size_t i = 0; affine && i < here.size(); ++i) {
      const Interval both = intersect(here[i], (*affine)[i]);
      if (!is_nan(both)) here[i] = both;
    }
    const std::vector<double> middle = middles(here);
    double off = distance_up(middle, here);
    for (std::size_t k = 0; k < node.inputs.size() && off < near.off; ++k) {
      const double moved =
          graph_.value(node.inputs[k]).constant ? 0 : values_[node.inputs[k].index].off;
      if (moved > 0) off = add_up(off, gain_mul_up(gain(node, k, o), moved));
    }
    if (!(off < near.off)) continue;
    near = {middle, off};
    Row less = all;
    for (std::size_t i = 0; i < less.size(); ++i) less[i] = within(less[i], middle[i], off);
    derivative_.values().shrink(id, less);
  }
}

bool NearPoint::push_node(const Node& node, DerivativeBoxes::Rows& rows, std::vector<Near>& near) {
  DerivativeBoxes::Rows points;
  for (const ValueId id : node.inputs) {
    if (!rows.contains(id.index)) continue;
    Row& row = points[id.index];
    row.clear();
    for (const double e : near[id.index].middle) row.push_back(point(e));
  }
  if (points.empty()) return true;
  if (!derivative_.push_node(node, rows) || !derivative_.push_node(node, points, true))
    return false;
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    const ValueId id = node.outputs[o];
    Row& all = rows.at(id.index);
    Near& to = near[id.index];
    to.middle = middles(all);
    to.off = distance_up(to.middle, all);
    const Row& here = points.at(id.index);
    const std::vector<double> middle = middles(here);
    double off = distance_up(middle, here);
    for (std::size_t k = 0; k < node.inputs.size() && off < to.off; ++k) {
      if (!rows.contains(node.inputs[k].index)) continue;
      const double moved = near[node.inputs[k].index].off;
      if (moved > 0) off = add_up(off, gain_mul_up(gain(node, k, o), moved));
    }
    if (!(off < to.off)) continue;
    to = {middle, off};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = within(all[i], middle[i], off);
  }
  return true;
}

std::optional<DerivativeBoxes::Row> NearPoint::push(std::span<const double> direction,
                                                    ValueId output) {
  if (!derivative_.unsupported(output).empty()) return std::nullopt;
  const std::vector<bool> wanted = derivative_.reached(output);
  DerivativeBoxes::Rows rows;
  std::vector<Near> near(graph_.values().size());
  const std::vector<Tensor> parts = split_inputs(graph_, direction);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ValueId id = graph_.inputs()[i];
    if (!is_floating(graph_.value(id).type.type)) continue;
    for (const double e : parts[i].doubles()) rows[id.index].push_back(point(e));
    near[id.index] = {middles(rows[id.index]), 0};
  }
  for (const Node& node : graph_.nodes()) {
    const auto leads = [&](ValueId id) { return wanted[id.index]; };
    if (std::ranges::none_of(node.outputs, leads)) continue;
    find_value(node);
    if (!push_node(node, rows, near)) return std::nullopt;
  }
  const auto found = rows.find(output.index);
  if (found != rows.end()) return found->second;
  return Row(static_cast<std::size_t>(element_count(graph_.value(output).type.shape)), point(0));
}

}  // namespace lipscope

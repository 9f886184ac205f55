// SPDX-License-Identifier: Apache-2.0
// |J(x) v| / |v| from below, proved: forward differentiation in interval arithmetic.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/interval.h"
#include "bounds/boxes.h"
#include "ops/elementwise.h"

namespace lipscope::properties {

// Boxes that hold the values at a point and their derivatives along a direction. Where a kink is
// too near to tell its sides apart, both one-sided derivatives are inside.
class TangentBoxes {
 public:
  using Row = std::vector<Interval>;

  TangentBoxes(const Graph& graph, std::span<const double> at, std::span<const double> direction)
      : graph_(graph), values_(graph, points(graph, at)) {
    const std::vector<Tensor> parts = split_inputs(graph, direction);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      for (const double e : parts[i].doubles())
        tangents_[graph.inputs()[i].index].push_back(point(e));
    }
  }

  // Nothing when an operator on the way tells neither its matrix nor its slopes.
  std::optional<Row> output() {
    for (const Node& node : graph_.nodes()) {
      if (!push(node)) return std::nullopt;
    }
    return tangent(graph_.outputs()[0]);
  }

 private:
  static std::vector<Box> points(const Graph& graph, std::span<const double> at) {
    std::vector<Box> boxes;
    for (const Tensor& tensor : split_inputs(graph, at)) boxes.push_back({tensor, tensor});
    return boxes;
  }

  Row tangent(ValueId id) const {
    const auto found = tangents_.find(id.index);
    if (found != tangents_.end()) return found->second;
    return Row(static_cast<std::size_t>(element_count(graph_.value(id).type.shape)), point(0));
  }

  bool push(const Node& node) {
    std::vector<Box> boxes;
    bool moves = false;
    for (const ValueId id : node.inputs) {
      boxes.push_back(values_.at(id));
      moves = moves || tangents_.contains(id.index);
    }
    if (!moves) return true;
    if (const auto* curve = dynamic_cast<const Elementwise*>(node.op.get()))
      return push_curve(node, *curve, boxes[0]);
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (!push_affine(node, boxes, o)) return false;
    }
    return true;
  }

  bool push_curve(const Node& node, const Elementwise& curve, const Box& at) {
    Row row = tangent(node.inputs[0]);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto slopes = curve.slopes({at.lower.doubles()[i], at.upper.doubles()[i]});
      if (!slopes) return false;
      row[i] = row[i] * *slopes;
    }
    tangents_[node.outputs[0].index] = std::move(row);
    return true;
  }

  bool push_affine(const Node& node, const std::vector<Box>& boxes, std::size_t o) {
    Row row(static_cast<std::size_t>(element_count(graph_.value(node.outputs[o]).type.shape)),
            point(0));
    for (std::size_t k = 0; k < boxes.size(); ++k) {
      if (!tangents_.contains(node.inputs[k].index)) continue;
      const Row& in = tangents_[node.inputs[k].index];
      const MatrixQuery query{boxes, static_cast<Index>(k), static_cast<Index>(o)};
      const bool known = node.op->matrix(query, [&](Index i, Index j, double lo, double hi) {
        Interval& sum = row[static_cast<std::size_t>(i)];
        sum = sum + Interval{lo, hi} * in[static_cast<std::size_t>(j)];
      });
      if (!known) return false;
    }
    tangents_[node.outputs[o].index] = std::move(row);
    return true;
  }

  const Graph& graph_;
  ValueBoxes values_;
  std::map<std::uint32_t, Row> tangents_;  // by value; none: it does not move
};

inline std::optional<double> proved_stretch(const Graph& graph, const NormPair& norms,
                                            std::span<const double> at,
                                            std::span<const double> direction) {
  const auto moved = TangentBoxes(graph, at, direction).output();
  if (!moved) return std::nullopt;
  std::vector<double> least;
  for (const Interval& entry : *moved) {
    const double size = mignitude(entry);
    least.push_back(std::isfinite(size) ? size : 0);
  }
  const double length = pnorm_up(direction, norms.in.p());
  return length > 0 ? div_down(pnorm_down(least, norms.out.p()), length) : 0;
}

}  // namespace lipscope::properties

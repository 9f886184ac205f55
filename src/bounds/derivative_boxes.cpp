// SPDX-License-Identifier: Apache-2.0
#include "bounds/derivative_boxes.h"

#include <algorithm>

#include "ops/box_product.h"
#include "ops/elementwise.h"
#include "ops/multilinear.h"

namespace lipscope {
namespace {

Index entry_count(const Graph& graph, ValueId id) {
  return element_count(graph.value(id).type.shape);
}

DerivativeBoxes::Row zero_row(const Graph& graph, ValueId id) {
  return DerivativeBoxes::Row(static_cast<std::size_t>(entry_count(graph, id)), point(0));
}

void add_to(DerivativeBoxes::Row& to, const DerivativeBoxes::Row& more) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += more[i];
}

// A function of single entries: its slopes times a row. Nothing where it does not tell them.
std::optional<DerivativeBoxes::Row> times_slopes(const Elementwise& curve, const Box& at,
                                                 DerivativeBoxes::Row row) {
  const auto low = at.lower.doubles(), high = at.upper.doubles();
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto slopes = curve.slopes({low[i], high[i]});
    if (!slopes) return std::nullopt;
    row[i] = row[i] * *slopes;
  }
  return row;
}

Box box_of(const DerivativeBoxes::Row& row, const Shape& shape) {
  Box box{Tensor::zeros(ElementType::kFloat64, shape), Tensor::zeros(ElementType::kFloat64, shape)};
  const auto low = box.lower.doubles(), high = box.upper.doubles();
  for (std::size_t i = 0; i < row.size(); ++i) low[i] = row[i].lo, high[i] = row[i].hi;
  return box;
}

// A sum of products: the same sum with input k, or for the transposed map the output, replaced by
// the row. Nothing where the range of that is not known.
std::optional<DerivativeBoxes::Row> times_multilinear(const Multilinear& form,
                                                      std::vector<Box> boxes, std::size_t k,
                                                      const DerivativeBoxes::Row& row,
                                                      bool transposed) {
  Multilinear part = form;
  std::erase_if(part.terms, [&](const Multilinear::Term& term) {
    return std::ranges::find(term.inputs, k) == term.inputs.end();
  });
  const Shape in_shape = boxes[k].lower.shape();
  if (transposed) {
    std::swap(part.out_strides, part.strides[k]);
    part.out.shape = in_shape;
  }
  boxes[k] = box_of(row, transposed ? form.out.shape : in_shape);
  const auto range = multilinear_range(part, boxes);
  if (!range) return std::nullopt;
  DerivativeBoxes::Row out;
  const auto low = (*range)[0].lower.doubles(), high = (*range)[0].upper.doubles();
  for (std::size_t i = 0; i < low.size(); ++i) out.push_back({low[i], high[i]});
  return out;
}

}  // namespace

DerivativeBoxes::DerivativeBoxes(const Graph& graph, std::span<const Box> inputs)
    : graph_(graph), values_(graph, inputs), moves_(graph.values().size()) {
  for (const ValueId id : graph.inputs()) moves_[id.index] = is_floating(graph.value(id).type.type);
  for (const Node& node : graph.nodes()) {
    const bool any = std::ranges::any_of(node.inputs, [&](ValueId id) { return moves_[id.index]; });
    for (const ValueId id : node.outputs) moves_[id.index] = any;
  }
}

std::vector<bool> DerivativeBoxes::reached(ValueId output) const {
  std::vector<bool> wanted(graph_.values().size());
  wanted[output.index] = true;
  for (std::size_t n = graph_.nodes().size(); n-- > 0;) {
    const Node& node = graph_.nodes()[n];
    if (std::ranges::none_of(node.outputs, [&](ValueId id) { return wanted[id.index]; })) continue;
    for (const ValueId id : node.inputs) wanted[id.index] = true;
  }
  return wanted;
}

std::string DerivativeBoxes::unsupported(ValueId output) const {
  const std::vector<bool> wanted = reached(output);
  for (const Node& node : graph_.nodes()) {
    const ValueId id = node.outputs[0];
    if (!wanted[id.index] || !moves_[id.index]) continue;
    if (!is_floating(graph_.value(id).type.type))
      return "node '" + node.name + "' makes integers of what moves";
  }
  return {};
}

double DerivativeBoxes::work(ValueId output) const {
  const std::vector<bool> wanted = reached(output);
  double work = 0;
  for (const Node& node : graph_.nodes()) {
    if (!wanted[node.outputs[0].index] || !moves_[node.outputs[0].index]) continue;
    double weights = 0;
    for (const ValueId id : node.inputs) {
      const Shape& shape = graph_.value(id).type.shape;
      if (!moves_[id.index] && shape.size() > 1)
        weights = std::max(weights, static_cast<double>(element_count(shape)));
    }
    const Shape& shape = graph_.value(node.outputs[0]).type.shape;
    const double out = static_cast<double>(element_count(shape));
    const double last = shape.empty() ? 1 : static_cast<double>(std::max<Index>(1, shape.back()));
    // Of a dense layer each output entry takes a column of the weights.
    work += out + (weights > 0 ? out * std::max(1.0, weights / last) : out);
  }
  return work;
}

std::vector<Box> DerivativeBoxes::boxes_of(const Node& node) {
  std::vector<Box> boxes;
  for (const ValueId id : node.inputs) boxes.push_back(values_.at(id));
  return boxes;
}

bool DerivativeBoxes::push_node(const Node& node, Rows& rows) {
  if (std::ranges::none_of(node.inputs, [&](ValueId id) { return rows.contains(id.index); }))
    return true;
  const std::vector<Box> boxes = boxes_of(node);
  if (const auto* curve = dynamic_cast<const Elementwise*>(node.op.get())) {
    auto row = times_slopes(*curve, boxes[0], rows.at(node.inputs[0].index));
    if (row) rows[node.outputs[0].index] = std::move(*row);
    return row.has_value();
  }
  const auto* product = dynamic_cast<const BoxProduct*>(node.op.get());
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    Row row = zero_row(graph_, node.outputs[o]);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const auto moved = rows.find(node.inputs[k].index);
      if (moved == rows.end()) continue;
      if (product != nullptr) {
        Row part(row.size());
        if (o > 0 || k > 0 || !product->box_product(boxes, moved->second, false, part))
          return false;
        add_to(row, part);
        continue;
      }
      if (const Multilinear* form = as_multilinear(*node.op)) {
        const auto part = times_multilinear(*form, boxes, k, moved->second, false);
        if (!part) return false;
        add_to(row, *part);
        continue;
      }
      const MatrixQuery query{boxes, static_cast<Index>(k), static_cast<Index>(o)};
      const bool known = node.op->matrix(query, [&](Index i, Index j, double lo, double hi) {
        row[static_cast<std::size_t>(i)] +=
            Interval{lo, hi} * moved->second[static_cast<std::size_t>(j)];
      });
      if (!known) return false;
    }
    rows[node.outputs[o].index] = std::move(row);
  }
  return true;
}

bool DerivativeBoxes::pull_node(const Node& node, Rows& rows) {
  if (std::ranges::none_of(node.outputs, [&](ValueId id) { return rows.contains(id.index); }))
    return true;
  const std::vector<Box> boxes = boxes_of(node);
  const auto add = [&](ValueId id, Row row) {
    const auto there = rows.find(id.index);
    if (there == rows.end()) {
      rows[id.index] = std::move(row);
    } else {
      add_to(there->second, row);
    }
  };
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    const auto found = rows.find(node.outputs[o].index);
    if (found == rows.end()) continue;
    const Row weights = std::move(found->second);
    rows.erase(found);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!moves_[node.inputs[k].index]) continue;
      if (const auto* curve = dynamic_cast<const Elementwise*>(node.op.get())) {
        auto row = times_slopes(*curve, boxes[0], weights);
        if (!row) return false;
        add(node.inputs[k], std::move(*row));
        continue;
      }
      Row row = zero_row(graph_, node.inputs[k]);
      if (const auto* product = dynamic_cast<const BoxProduct*>(node.op.get())) {
        if (o > 0 || k > 0 || !product->box_product(boxes, weights, true, row)) return false;
      } else if (const Multilinear* form = as_multilinear(*node.op)) {
        auto part = times_multilinear(*form, boxes, k, weights, true);
        if (!part) return false;
        row = std::move(*part);
      } else {
        const MatrixQuery query{boxes, static_cast<Index>(k), static_cast<Index>(o)};
        const bool known = node.op->matrix(query, [&](Index i, Index j, double lo, double hi) {
          row[static_cast<std::size_t>(j)] +=
              Interval{lo, hi} * weights[static_cast<std::size_t>(i)];
        });
        if (!known) return false;
      }
      add(node.inputs[k], std::move(row));
    }
  }
  return true;
}

std::optional<DerivativeBoxes::Row> DerivativeBoxes::push(std::span<const double> direction,
                                                          ValueId output) {
  if (!unsupported(output).empty()) return std::nullopt;
  const std::vector<bool> wanted = reached(output);
  Rows rows;
  const std::vector<Tensor> parts = split_inputs(graph_, direction);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ValueId id = graph_.inputs()[i];
    if (!moves_[id.index]) continue;
    for (const double e : parts[i].doubles()) rows[id.index].push_back(point(e));
  }
  for (const Node& node : graph_.nodes()) {
    if (!wanted[node.outputs[0].index]) continue;
    if (!push_node(node, rows)) return std::nullopt;
  }
  const auto found = rows.find(output.index);
  return found == rows.end() ? zero_row(graph_, output) : found->second;
}

std::optional<DerivativeBoxes::Row> DerivativeBoxes::pull(std::span<const double> weights,
                                                          ValueId output) {
  if (!unsupported(output).empty()) return std::nullopt;
  Rows rows;
  if (moves_[output.index]) {
    for (const double e : weights) rows[output.index].push_back(point(e));
  }
  for (std::size_t n = graph_.nodes().size(); n-- > 0;) {
    if (!pull_node(graph_.nodes()[n], rows)) return std::nullopt;
  }
  Row all;
  for (const ValueId id : graph_.inputs()) {
    if (!moves_[id.index]) continue;
    const auto found = rows.find(id.index);
    const Row part = found == rows.end() ? zero_row(graph_, id) : found->second;
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace lipscope

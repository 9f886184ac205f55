// SPDX-License-Identifier: Apache-2.0
#include "bounds/derivative_boxes.h"

#include <algorithm>
#include <cmath>

#include "base/checkpoint.h"
#include "ops/elementwise/elementwise.h"
#include "ops/facets/box_product.h"
#include "ops/linear/multilinear.h"

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

// A matrix told entry by entry times a row: sums of the middles in twice the precision, and what
// roundings and radii can make of them [attention-20].
class MatrixTimesRow {
 public:
  MatrixTimesRow(const DerivativeBoxes::Row& row, Index size)
      : row_(row), sums_(static_cast<std::size_t>(size)) {
    for (const Interval& x : row) {
      middle_.push_back(midpoint(x));
      radius_.push_back(radius_up(x));
    }
  }

  void add(Index to, Index from, double low, double high) {
    const auto f = static_cast<std::size_t>(from);
    const double v = middle_[f], s = radius_[f];
    if ((v == 0 && s == 0) || (low == 0 && high == 0)) return;
    Sum& sum = sums_[static_cast<std::size_t>(to)];
    const Interval weight{low, high};
    const double w = low == high ? low : midpoint(weight);
    const double r = low == high ? 0 : radius_up(weight);
    sum.copied = sum.terms == 0 && r == 0 && std::fabs(w) == 1 ? from + 1 : 0;
    sum.sign = w;
    ++sum.terms;
    const double term = w * v, value = sum.value + term, was = value - term;
    sum.rest += ((sum.value - was) + (term - (value - was))) + std::fma(w, v, -term);
    sum.value = value;
    sum.size += std::fabs(term);
    sum.spread += std::fabs(w) * s + r * (std::fabs(v) + s);
  }

  void add_to(DerivativeBoxes::Row& out) const {
    constexpr double kSlack = 1 + 1e-9;  // sums of absolute values are rounded, too
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const Sum& sum = sums_[i];
      if (sum.terms == 0) continue;
      if (sum.copied > 0) {
        out[i] += point(sum.sign) * row_[static_cast<std::size_t>(sum.copied - 1)];
        continue;
      }
      const double lost = mul_up(static_cast<double>(4 * sum.terms + 4), kMinSubnormal);
      const double rounded = mul_up(gamma_up(3 * sum.terms), gamma_up(sum.terms + 2));
      const double off =
          add_up(mul_up(add_up(mul_up(rounded, sum.size), sum.spread), kSlack), lost);
      const bool known = std::isfinite(sum.value + sum.rest) && std::isfinite(off);
      out[i] += known ? Interval{sub_down(add_down(sum.value, sum.rest), off),
                                 add_up(add_up(sum.value, sum.rest), off)}
                      : kEntire;
    }
  }

 private:
  struct Sum {
    double value = 0, rest = 0, size = 0, spread = 0, sign = 1;
    std::size_t terms = 0;
    Index copied = 0;  // the only term is plus or minus this entry, counted from 1
  };
  const DerivativeBoxes::Row& row_;
  std::vector<double> middle_, radius_;
  std::vector<Sum> sums_;
};

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
    for (const ValueId id : node.outputs) {
      if (wanted[id.index] && moves_[id.index] && !is_floating(graph_.value(id).type.type))
        return "node '" + node.name + "' makes integers of what moves";
    }
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

bool DerivativeBoxes::push_node(const Node& node, Rows& rows, bool careful) {
  if (std::ranges::none_of(node.inputs, [&](ValueId id) { return rows.contains(id.index); }))
    return true;
  const std::vector<Box> boxes = boxes_of(node);
  if (const Elementwise* curve = node.op->elementwise()) {
    auto row = times_slopes(*curve, boxes[0], rows.at(node.inputs[0].index));
    if (row) rows[node.outputs[0].index] = std::move(*row);
    return row.has_value();
  }
  const BoxProduct* product = node.op->box_product();
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    Row row = zero_row(graph_, node.outputs[o]);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const auto moved = rows.find(node.inputs[k].index);
      if (moved == rows.end()) continue;
      if (product != nullptr) {
        Row part(row.size());
        if (o > 0 || k > 0 || !product->enclose_product(boxes, moved->second, false, part))
          return false;
        add_to(row, part);
        continue;
      }
      const Multilinear* form = node.op->multilinear();
      if (form == nullptr || careful) {
        const MatrixQuery query{boxes, static_cast<Index>(k), static_cast<Index>(o)};
        MatrixTimesRow times(moved->second, std::ssize(row));
        const bool known = node.op->matrix(
            query, [&](Index i, Index j, double lo, double hi) { times.add(i, j, lo, hi); });
        if (known) times.add_to(row);
        if (known) continue;
      }
      if (form == nullptr) return false;
      const auto part = times_multilinear(*form, boxes, k, moved->second, false);
      if (!part) return false;
      add_to(row, *part);
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
      if (const Elementwise* curve = node.op->elementwise()) {
        auto row = times_slopes(*curve, boxes[0], weights);
        if (!row) return false;
        add(node.inputs[k], std::move(*row));
        continue;
      }
      Row row = zero_row(graph_, node.inputs[k]);
      if (const BoxProduct* product = node.op->box_product()) {
        if (o > 0 || k > 0 || !product->enclose_product(boxes, weights, true, row)) return false;
      } else if (const Multilinear* form = node.op->multilinear()) {
        auto part = times_multilinear(*form, boxes, k, weights, true);
        if (!part) return false;
        row = std::move(*part);
      } else {
        const MatrixQuery query{boxes, static_cast<Index>(k), static_cast<Index>(o)};
        MatrixTimesRow times(weights, std::ssize(row));
        const bool known = node.op->matrix(
            query, [&](Index i, Index j, double lo, double hi) { times.add(j, i, lo, hi); });
        if (!known) return false;
        times.add_to(row);
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
  auto rows = pull_rows(weights, output, {});
  if (!rows) return std::nullopt;
  return std::move(rows->front());
}

std::optional<std::vector<DerivativeBoxes::Row>> DerivativeBoxes::pull_rows(
    std::span<const double> weights, ValueId output, std::span<const ValueId> taps) {
  if (!unsupported(output).empty()) return std::nullopt;
  Rows rows;
  if (moves_[output.index]) {
    for (const double e : weights) rows[output.index].push_back(point(e));
  }
  std::vector<Row> found(1 + taps.size());
  for (std::size_t n = graph_.nodes().size(); n-- > 0;) {
    const Node& node = graph_.nodes()[n];
    // All users of a value come after its maker: here its row is complete.
    for (std::size_t t = 0; t < taps.size(); ++t) {
      if (std::ranges::find(node.outputs, taps[t]) == node.outputs.end()) continue;
      const auto row = rows.find(taps[t].index);
      if (row != rows.end()) found[1 + t] = row->second;
    }
    double entries = 0;
    for (const ValueId id : node.inputs) entries += static_cast<double>(entry_count(graph_, id));
    checkpoint(30 * entries);
    if (!pull_node(node, rows)) return std::nullopt;
  }
  for (std::size_t t = 0; t < taps.size(); ++t) {
    if (found[1 + t].empty()) found[1 + t] = zero_row(graph_, taps[t]);
  }
  for (const ValueId id : graph_.inputs()) {
    if (!moves_[id.index]) continue;
    const auto row = rows.find(id.index);
    const Row part = row == rows.end() ? zero_row(graph_, id) : row->second;
    found[0].insert(found[0].end(), part.begin(), part.end());
  }
  return found;
}

}  // namespace lipscope

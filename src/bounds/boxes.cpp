// SPDX-License-Identifier: Apache-2.0
#include "bounds/boxes.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/portable.h"
#include "base/rounding.h"
#include "ops/facets/entry_bounds.h"

namespace lipscope {
namespace {

// A NaN end is an end nobody knows.
void repair(Box& box) {
  for (double& entry : box.lower.doubles()) entry = std::isnan(entry) ? -kInf : entry;
  for (double& entry : box.upper.doubles()) entry = std::isnan(entry) ? kInf : entry;
}

// Sums of products differ by their rounding, which is small against the largest entry of what is
// added up, hence, unless nearly all of it cancels, against the larger end; ends of few bits are
// limits of functions, not sums.
void widen(Box& box) {
  const auto low = box.lower.doubles(), high = box.upper.doubles();
  for (std::size_t i = 0; i < low.size(); ++i) {
    const double size = std::max(std::fabs(low[i]), std::fabs(high[i]));
    if (!(size < kInf)) continue;
    const double margin = size * 0x1p-40;
    // A positive end stays positive: roots and quotients need that.
    const double least = low[i] > 0 ? low[i] * (1 - 0x1p-20) : -kInf;
    if (!has_few_bits(low[i])) low[i] = std::max(sub_down(low[i], margin), least);
    if (!has_few_bits(high[i])) high[i] = add_up(high[i], margin);
  }
}

}  // namespace

Box whole_line(const Shape& shape) {
  Box box{Tensor::zeros(ElementType::kFloat64, shape), Tensor::zeros(ElementType::kFloat64, shape)};
  std::ranges::fill(box.lower.doubles(), -kInf);
  std::ranges::fill(box.upper.doubles(), kInf);
  return box;
}

std::vector<Box> input_boxes(const Graph& graph, const Domain& domain) {
  std::vector<Box> boxes;
  std::size_t at = 0;
  for (const ValueId id : graph.inputs()) {
    const ValueType& type = graph.value(id).type;
    Box box = whole_line(type.shape);
    if (!is_floating(type.type)) {
      boxes.push_back(integer_box(type));
      continue;
    }
    const auto low = box.lower.doubles(), high = box.upper.doubles();
    for (std::size_t i = 0; i < low.size(); ++i, ++at) {
      if (domain.ball) {
        const double c = domain.ball->center.doubles()[at];
        const double radius = std::max(domain.ball->radius, kMinSubnormal);  // see [composition-3]
        low[i] = sub_down(c, radius);
        high[i] = add_up(c, radius);
      }
      if (domain.box) {
        low[i] = std::max(low[i], domain.box->lower.doubles()[at]);
        high[i] = std::min(high[i], domain.box->upper.doubles()[at]);
      }
    }
    boxes.push_back(std::move(box));
  }
  return boxes;
}

ValueBoxes::ValueBoxes(const Graph& graph, std::span<const Box> inputs, BoxMargin margin)
    : graph_(graph), margin_(margin), boxes_(graph.values().size()), maker_(graph.values().size()) {
  for (std::size_t v = 0; v < boxes_.size(); ++v) {
    const Value& value = graph.values()[v];
    if (value.constant) boxes_[v] = value.constant->box();
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) boxes_[graph.inputs()[i].index] = inputs[i];
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    for (const ValueId id : graph.nodes()[n].outputs) maker_[id.index] = n + 1;
  }
}

const Box& ValueBoxes::at(ValueId id) {
  // Counted once it is found: a stop in between leaves it to be found again.
  for (; done_ < maker_[id.index]; ++done_) propagate(graph_.nodes()[done_]);
  const Value& value = graph_.value(id);
  Box& box = boxes_[id.index];
  // Nobody follows integers that are not constants: they may be any.
  if (!value.constant && !is_floating(value.type.type) && box.lower.size() == 0)
    box = integer_box(value.type);
  return box;
}

void ValueBoxes::shrink(ValueId id, std::span<const Interval> entries) {
  static_cast<void>(at(id));
  Box& box = boxes_[id.index];
  const auto low = box.lower.doubles(), high = box.upper.doubles();
  LIPSCOPE_CHECK(low.size() == entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) low[i] = entries[i].lo, high[i] = entries[i].hi;
}

void ValueBoxes::propagate(const Node& node) {
  const bool known = std::ranges::all_of(node.inputs, [&](ValueId id) {
    return is_floating(graph_.value(id).type.type) || graph_.value(id).constant;
  });
  std::vector<Box> in;
  for (const ValueId id : node.inputs) {
    if (known) in.push_back(boxes_[id.index]);
  }
  double entries = 0;
  for (const ValueId id : node.outputs)
    entries += static_cast<double>(element_count(graph_.value(id).type.shape));
  checkpoint(500 + 20 * entries);
  auto range = known ? node.op->range(in) : std::nullopt;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueType& type = graph_.value(node.outputs[i]).type;
    if (!is_floating(type.type)) continue;
    Box& box = boxes_[node.outputs[i].index];
    box = range ? std::move((*range)[i]) : whole_line(type.shape);
    repair(box);
    if (margin_ == BoxMargin::kPortable) widen(box);
  }
}

Index input_size(const Graph& graph) {
  Index size = 0;
  for (const ValueId id : graph.inputs()) {
    const ValueType& type = graph.value(id).type;
    if (is_floating(type.type)) size += element_count(type.shape);
  }
  return size;
}

std::vector<Tensor> split_inputs(const Graph& graph, std::span<const double> all) {
  LIPSCOPE_CHECK(static_cast<Index>(all.size()) == input_size(graph));
  std::vector<Tensor> inputs;
  std::size_t at = 0;
  for (const ValueId id : graph.inputs()) {
    const ValueType& type = graph.value(id).type;
    Tensor tensor = Tensor::zeros(type.type, type.shape);
    if (is_floating(type.type)) {
      const auto to = tensor.doubles();
      std::copy_n(all.begin() + static_cast<Index>(at), to.size(), to.begin());
      at += to.size();
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

}  // namespace lipscope

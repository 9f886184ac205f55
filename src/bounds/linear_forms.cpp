// SPDX-License-Identifier: Apache-2.0
#include "bounds/linear_forms.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rounding.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linear/multilinear.h"

namespace lipscope {
namespace {

// Terms of a relaxed node that may meet in one entry of an input.
double most_terms(const Graph& graph, const Node& node) {
  if (node.op->elementwise() != nullptr) return 4;  // lines and others
  double products = 0;
  if (const Multilinear* form = node.op->multilinear()) {
    double each = 2;
    for (const Index extent : form->extents) each *= static_cast<double>(extent);
    products = each * static_cast<double>(form->terms.size());
  }
  const Index entries = element_count(graph.value(node.outputs[0]).type.shape);
  return std::max(products, 4 * static_cast<double>(entries));
}

// Whether no column has more entries than were counted on.
bool few_terms(const SparseRows& rows, double most) {
  std::vector<double> terms;
  for (const std::uint32_t column : rows.columns) {
    if (column >= terms.size()) terms.resize(column + 1);
    if (++terms[column] > most) return false;
  }
  return true;
}

// What rounding a product and adding it up with others may cost, and a weight that is not known:
// per unit of the weight of the output, for an entry of this size.
double loss_of(const SparseRows& rows, std::size_t k, double terms, double size) {
  const double w = rows.weights[k], width = rows.width.empty() ? 0 : rows.width[k];
  const bool copied = terms <= 1 && std::fabs(w) == 1;
  if (!copied && size > 0x1p100) return kInf;  // products below all numbers might count
  const double rounding =
      copied ? 0 : mul_up(std::fabs(w), gamma_up(static_cast<std::size_t>(terms) + 2));
  const double rate = add_up(rounding, width);
  return rate == 0 ? 0 : mul_up(rate, size);
}

}  // namespace

void LinearBounds::find_terms() {
  terms_.assign(graph_.values().size(), 0);
  for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
    const Node& node = graph_.nodes()[n];
    if (const AffineNode* affine = nodes_.at(n)) {
      for (const AffineNode::Block& block : affine->blocks)
        terms_[node.inputs[block.input].index] += static_cast<double>(block.most_terms);
    } else {
      for (const ValueId id : node.inputs) terms_[id.index] += most_terms(graph_, node);
    }
  }
}

double LinearBounds::size_of(ValueId id, std::size_t entry) {
  const Box& box = values_.at(id);
  return std::max(std::fabs(box.lower.doubles()[entry]), std::fabs(box.upper.doubles()[entry]));
}

LinearBounds::Forms LinearBounds::affine_forms(std::size_t n) {
  const AffineNode& affine = *nodes_.at(n);
  const Node& node = graph_.nodes()[n];
  Forms forms;
  forms.outputs.resize(node.outputs.size());
  for (std::size_t o = 0; o < forms.outputs.size(); ++o) {
    Forms::Output& out = forms.outputs[o];
    for (const Interval& c : affine.constants[o]) {
      out.low.push_back(c.lo);
      out.high.push_back(c.hi);
    }
    out.low_loss.resize(out.low.size());
  }
  for (const AffineNode::Block& block : affine.blocks) {
    Forms::Output& out = forms.outputs[block.output];
    const ValueId id = node.inputs[block.input];
    const SparseRows& m = block.matrix;
    out.blocks.push_back({block.input, &m, &m});
    forms.work += static_cast<double>(m.columns.size());
    for (std::size_t i = 0; i < m.rows(); ++i) {
      for (auto k = static_cast<std::size_t>(m.begin[i]);
           k < static_cast<std::size_t>(m.begin[i + 1]); ++k) {
        const double loss = loss_of(m, k, terms_[id.index], size_of(id, m.columns[k]));
        if (loss != 0) out.low_loss[i] = add_up(out.low_loss[i], loss);
      }
    }
  }
  for (Forms::Output& out : forms.outputs) out.high_loss = out.low_loss;
  return forms;
}

LinearBounds::Forms LinearBounds::relaxed_forms(std::size_t n) {
  const Node& node = graph_.nodes()[n];
  Forms forms;
  forms.outputs.resize(node.outputs.size());
  std::vector<Box> in;
  std::vector<Index> first;  // column of the first entry of each input
  Index columns = 0;
  bool known = true;
  for (const ValueId id : node.inputs) {
    in.push_back(values_.at(id));
    first.push_back(columns);
    const Value& value = graph_.value(id);
    columns += element_count(value.type.shape);
    known = known && (is_floating(value.type.type) || value.constant);
  }
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    if (!is_floating(graph_.value(node.outputs[o]).type.type)) continue;
    Forms::Output& out = forms.outputs[o];
    const Box& box = values_.at(node.outputs[o]);
    out.low.assign(box.lower.doubles().begin(), box.lower.doubles().end());
    out.high.assign(box.upper.doubles().begin(), box.upper.doubles().end());
    out.low_loss.resize(out.low.size());
    out.high_loss.resize(out.low.size());
  }
  const auto relaxed = known ? node.op->relax(in) : std::nullopt;
  if (!relaxed) return forms;
  // By input; those that do not move become part of the offset.
  Forms::Output& out = forms.outputs[0];
  std::vector<std::array<SparseRows*, 2>> by_input(node.inputs.size());
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (!nodes_.moves(node.inputs[k])) continue;
    for (SparseRows*& side : by_input[k]) {
      forms.own.push_back(std::make_unique<SparseRows>());
      side = forms.own.back().get();
    }
    out.blocks.push_back({k, by_input[k][0], by_input[k][1]});
  }
  for (const bool above : {false, true}) {
    const AffineRows& rows = above ? relaxed->upper : relaxed->lower;
    std::vector<double>& offsets = above ? out.high : out.low;
    std::vector<double>& loss = above ? out.high_loss : out.low_loss;
    forms.work += static_cast<double>(rows.columns.size());
    for (std::size_t i = 0; i < rows.offsets.size(); ++i) {
      Interval offset = point(rows.offsets[i]);
      for (auto j = static_cast<std::size_t>(rows.begin[i]);
           j < static_cast<std::size_t>(rows.begin[i + 1]); ++j) {
        const auto after = std::ranges::upper_bound(first, rows.columns[j]);
        const auto k = static_cast<std::size_t>(after - first.begin()) - 1;
        const auto entry = static_cast<std::size_t>(rows.columns[j] - first[k]);
        const ValueId id = node.inputs[k];
        if (SparseRows* to = by_input[k][above ? 1 : 0]) {
          to->columns.push_back(static_cast<std::uint32_t>(entry));
          to->weights.push_back(rows.weights[j]);
          loss[i] = add_up(
              loss[i], loss_of(*to, to->weights.size() - 1, terms_[id.index], size_of(id, entry)));
        } else {
          const Box& box = in[k];
          offset += rows.weights[j] * Interval{box.lower.at(static_cast<Index>(entry)),
                                               box.upper.at(static_cast<Index>(entry))};
        }
      }
      offsets[i] = above ? offset.hi : offset.lo;
      for (const auto& sides : by_input) {
        SparseRows* to = sides[above ? 1 : 0];
        if (to != nullptr) to->begin.push_back(std::ssize(to->columns));
      }
    }
  }
  const bool counted = std::ranges::all_of(forms.own, [&](const auto& rows) {
    return few_terms(*rows, 0.5 * most_terms(graph_, node));
  });
  LIPSCOPE_CHECK(counted);
  add_other_lines(node, forms);
  return forms;
}

void LinearBounds::add_other_lines(const Node& node, Forms& forms) {
  const Elementwise* curve = node.op->elementwise();
  if (curve == nullptr) return;
  const auto lines = curve->other_lines(values_.at(node.inputs[0]));
  if (!lines) return;
  Forms::OtherLines other{.below = lines->lower.weights,
                          .above = lines->upper.weights,
                          .low = lines->lower.offsets,
                          .high = lines->upper.offsets};
  const ValueId in = node.inputs[0];
  const double rate = gamma_up(static_cast<std::size_t>(terms_[in.index]) + 2);
  for (std::size_t i = 0; i < other.low.size(); ++i) {
    const double size = size_of(in, i), at_most = size > 0x1p100 ? kInf : mul_up(rate, size);
    other.low_loss.push_back(mul_up(at_most, std::fabs(other.below[i])));
    other.high_loss.push_back(mul_up(at_most, std::fabs(other.above[i])));
    other.split_loss.push_back(mul_up(0x1p-52, size_of(node.outputs[0], i)));
  }
  forms.outputs[0].other = std::move(other);
}

const LinearBounds::Forms& LinearBounds::forms(std::size_t node) {
  if (!forms_[node]) {
    forms_[node] = std::make_unique<Forms>(nodes_.at(node) != nullptr ? affine_forms(node)
                                                                      : relaxed_forms(node));
  }
  return *forms_[node];
}

}  // namespace lipscope

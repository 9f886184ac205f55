// SPDX-License-Identifier: Apache-2.0
#include "bounds/linear_bounds.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/parallel.h"
#include "base/rounding.h"
#include "bounds/linear_forms.h"
#include "ops/elementwise.h"
#include "ops/multilinear.h"

namespace lipscope {
namespace {

constexpr std::size_t kTogether = 64;  // rows pulled back at once

// Terms of a relaxed node that may meet in one entry of an input.
double most_terms(const Graph& graph, const Node& node) {
  if (dynamic_cast<const Elementwise*>(node.op.get()) != nullptr) return 4;  // lines and others
  double products = 0;
  if (const Multilinear* form = as_multilinear(*node.op)) {
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

// Sums of non-negative terms, over rows.
void add_scaled(double* to, const double* from, double factor, std::size_t n) {
  for (std::size_t r = 0; r < n; ++r) to[r] += factor * from[r];
}

}  // namespace

LinearBounds::LinearBounds(const Graph& graph, const AffineNodes& nodes, const Domain& domain,
                           const Options& options)
    : graph_(graph),
      nodes_(nodes),
      support_(domain, static_cast<std::size_t>(input_size(graph))),
      values_(graph, input_boxes(graph, domain)),
      maker_(graph.values().size()),
      forms_(graph.nodes().size()),
      stop_(options.stop) {
  LIPSCOPE_CHECK(support_.bounded());
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    for (const ValueId id : graph.nodes()[n].outputs) maker_[id.index] = n + 1;
  }
  find_terms();
  find_ranges(options);
}
LinearBounds::~LinearBounds() = default;

void LinearBounds::find_terms() {
  terms_.assign(graph_.values().size(), 0);
  for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
    const Node& node = graph_.nodes()[n];
    if (const AffineNode* affine = nodes_.at(n)) {
      for (const AffineNode::Part& part : affine->parts)
        terms_[node.inputs[part.input].index] += static_cast<double>(part.most_terms);
    } else {
      for (const ValueId id : node.inputs) terms_[id.index] += most_terms(graph_, node);
    }
  }
}

double LinearBounds::size_of(ValueId id, std::size_t entry) {
  const Box& box = values_.at(id);
  return std::max(std::fabs(box.lower.doubles()[entry]), std::fabs(box.upper.doubles()[entry]));
}

namespace {

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
  for (const AffineNode::Part& part : affine.parts) {
    Forms::Output& out = forms.outputs[part.output];
    const ValueId id = node.inputs[part.input];
    const SparseRows& m = part.matrix;
    out.parts.push_back({part.input, &m, &m});
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
    out.parts.push_back({k, by_input[k][0], by_input[k][1]});
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
  const auto* curve = dynamic_cast<const Elementwise*>(node.op.get());
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

void LinearBounds::pull(const Node& node, const Forms& forms, Rows& rows) const {
  const std::size_t n = rows.count;
  std::vector<double> positive(n), negative(n);
  const std::vector<RowCuts::Lines> uncut;
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    std::vector<double> given = std::move(rows.weights[node.outputs[o].index]);
    rows.weights[node.outputs[o].index].clear();
    if (given.empty()) continue;
    const Forms::Output& out = forms.outputs[o];
    const std::size_t position = maker_[node.outputs[o].index] - 1;
    const bool mixed = rows.mix != nullptr && out.other && !(*rows.mix)[position].empty();
    const std::vector<RowCuts::Lines>& cut =
        rows.cuts != nullptr ? rows.cuts->lines[position] : uncut;
    auto next_cut = cut.begin();
    for (const Forms::Part& part : out.parts) {
      const ValueId id = node.inputs[part.input];
      std::vector<double>& to = rows.weights[id.index];
      if (to.empty())
        to.resize(static_cast<std::size_t>(element_count(graph_.value(id).type.shape)) * n);
    }
    for (std::size_t i = 0; i < out.low.size(); ++i) {
      const double* a = &given[i * n];
      bool any_positive = false, any_negative = false;
      for (std::size_t r = 0; r < n; ++r) {
        positive[r] = a[r] > 0 ? a[r] : 0;
        negative[r] = a[r] < 0 ? a[r] : 0;
        any_positive = any_positive || a[r] > 0;
        any_negative = any_negative || a[r] < 0;
        if (std::isnan(a[r])) rows.loss[r] = kInf;  // of sums that left all numbers
      }
      if (!any_positive && !any_negative) continue;
      while (next_cut != cut.end() && next_cut->entry < i) ++next_cut;
      for (; next_cut != cut.end() && next_cut->entry == i; ++next_cut) {
        const std::size_t r = next_cut->row;
        pull_cut(*next_cut->lines, a[r], mixed ? (*rows.mix)[position][i * n + r] : 0, r,
                 rows.weights[node.inputs[0].index][i * n + r], rows);
        positive[r] = negative[r] = 0;
      }
      if (mixed) {
        // A share goes to the other lines, the rest stays.
        const Forms::OtherLines& other = *out.other;
        double* to = &rows.weights[node.inputs[0].index][i * n];
        for (std::size_t r = 0; r < n; ++r) {
          const double share = (positive[r] + negative[r]) * (*rows.mix)[position][i * n + r];
          if (share == 0) continue;
          const bool up = share > 0;
          to[r] += share * (up ? other.below[i] : other.above[i]);
          const double term = share * (up ? other.low[i] : other.high[i]);
          rows.constant[r] += term;
          rows.size[r] += std::fabs(term);
          rows.loss[r] += std::fabs(share) * (up ? other.low_loss[i] : other.high_loss[i]) +
                          std::fabs(a[r]) * other.split_loss[i];
          (up ? positive : negative)[r] = a[r] - share;
        }
      }
      const auto spread = [&](const SparseRows& m, std::vector<double>& to, const double* factor) {
        for (auto k = static_cast<std::size_t>(m.begin[i]);
             k < static_cast<std::size_t>(m.begin[i + 1]); ++k)
          add_scaled(&to[m.columns[k] * n], factor, m.weights[k], n);
      };
      for (const Forms::Part& part : out.parts) {
        std::vector<double>& to = rows.weights[node.inputs[part.input].index];
        if (part.below == part.above) {
          spread(*part.below, to, a);
        } else {
          if (any_positive) spread(*part.below, to, positive.data());
          if (any_negative) spread(*part.above, to, negative.data());
        }
      }
      // Here an offset or a loss may be infinite, and 0 times it is 0.
      const auto add_terms = [&](const std::vector<double>& side, double offset, double loss) {
        if (offset == 0 && loss == 0) return;
        for (std::size_t r = 0; r < n; ++r) {
          if (side[r] == 0) continue;
          const double term = side[r] * offset;
          rows.constant[r] += term;
          rows.size[r] += std::fabs(term);
          rows.loss[r] += std::fabs(side[r]) * loss;
        }
      };
      if (any_positive) add_terms(positive, out.low[i], out.low_loss[i]);
      if (any_negative) add_terms(negative, out.high[i], out.high_loss[i]);
    }
    rows.terms += 6 * static_cast<double>(out.low.size());
    if (rows.kept != nullptr && o == 0) (*rows.kept)[position] = std::move(given);
  }
}

void LinearBounds::run(Rows& rows, std::size_t from) const {
  for (std::size_t n = from; n-- > 0;) {
    const Node& node = graph_.nodes()[n];
    const bool touched = std::ranges::any_of(
        node.outputs, [&](ValueId id) { return !rows.weights[id.index].empty(); });
    if (!touched) continue;
    if (rows.cuts != nullptr) {
      for (const ValueId id : node.outputs) pull_multipliers(id, rows);
    }
    pull(node, *forms_[n], rows);
  }
  if (rows.cuts == nullptr) return;
  for (const ValueId id : graph_.inputs()) pull_multipliers(id, rows);
}

// The weights of the inputs in function r.
void LinearBounds::gather(const Rows& rows, std::size_t r, std::vector<double>& a) const {
  std::size_t at = 0;
  for (const ValueId id : graph_.inputs()) {
    if (!is_floating(graph_.value(id).type.type)) continue;
    const auto size = static_cast<std::size_t>(element_count(graph_.value(id).type.shape));
    const std::vector<double>& w = rows.weights[id.index];
    for (std::size_t e = 0; e < size; ++e, ++at) a[at] = w.empty() ? 0 : w[e * rows.count + r];
  }
}

std::vector<double> LinearBounds::finish(const Rows& rows) const {
  std::vector<double> result(rows.count), a(support_.inputs());
  for (std::size_t r = 0; r < rows.count; ++r) {
    gather(rows, r, a);
    for (double& e : a) e = -e;
    const double g = gamma_up(static_cast<std::size_t>(rows.terms) + 8);
    // The sums of sizes and losses are rounded themselves; products may vanish below all numbers.
    const double lost =
        mul_up(add_up(mul_up(g, rows.size[r]), rows.loss[r]), add_up(1, mul_up(4, g)));
    const double low =
        sub_down(sub_down(rows.constant[r], support_.max_up(a.data())), add_up(lost, 0x1p-900));
    result[r] = std::isnan(low) ? -kInf : low;
  }
  return result;
}

void LinearBounds::make_forms(std::size_t upto) {
  for (std::size_t n = 0; n < upto; ++n) {
    if (nodes_.moves(graph_.nodes()[n].outputs[0])) static_cast<void>(forms(n));
  }
}

std::vector<double> LinearBounds::lower_of(ValueId value, std::size_t count, const Fill& fill) {
  const auto size = static_cast<std::size_t>(element_count(graph_.value(value).type.shape));
  const std::size_t from = maker_[value.index];
  make_forms(from);
  std::vector<double> result(count);
  const auto pieces = static_cast<Index>((count + kTogether - 1) / kTogether);
  parallel_for(pieces, 1, [&](Index begin, Index end) {
    for (auto p = static_cast<std::size_t>(begin); p < static_cast<std::size_t>(end); ++p) {
      const std::size_t first = p * kTogether, n = std::min(kTogether, count - first);
      Rows rows(n, graph_.values().size());
      rows.weights[value.index].resize(size * n);
      for (std::size_t r = 0; r < n; ++r) fill(first + r, &rows.weights[value.index][r], n);
      run(rows, from);
      std::ranges::copy(finish(rows), result.begin() + static_cast<Index>(first));
    }
  });
  return result;
}

std::vector<double> LinearBounds::lower_by_box(ValueId value, std::span<const double> rows) {
  const auto size = static_cast<std::size_t>(element_count(graph_.value(value).type.shape));
  const std::size_t count = size == 0 ? 0 : rows.size() / size;
  LIPSCOPE_CHECK(count * size == rows.size());
  const Box& box = values_.at(value);
  std::vector<double> result(count);
  for (std::size_t r = 0; r < count; ++r) {
    Interval sum = point(0);
    for (std::size_t e = 0; e < size; ++e)
      sum += rows[r * size + e] * Interval{box.lower.doubles()[e], box.upper.doubles()[e]};
    result[r] = sum.lo;
  }
  return result;
}

std::vector<double> LinearBounds::lower(ValueId value, std::span<const double> rows) {
  std::vector<double> result = lower_by_box(value, rows);
  if (!nodes_.moves(value)) return result;
  const std::size_t count = result.size(), size = count == 0 ? 0 : rows.size() / count;
  const auto found = lower_of(value, count, [&](std::size_t r, double* to, std::size_t stride) {
    for (std::size_t e = 0; e < size; ++e) to[e * stride] = rows[r * size + e];
  });
  for (std::size_t r = 0; r < count; ++r) result[r] = std::max(result[r], found[r]);
  return result;
}

// Those whose range decides how well the node can be bounded.
std::vector<std::size_t> LinearBounds::entries_to_narrow(const Node& node, ValueId id) {
  const Box& box = values_.at(id);
  const auto* curve = dynamic_cast<const Elementwise*>(node.op.get());
  std::vector<std::size_t> wanted;
  for (std::size_t e = 0; e < box.lower.doubles().size(); ++e) {
    const Interval x{box.lower.doubles()[e], box.upper.doubles()[e]};
    if (!(x.lo < x.hi)) continue;
    const auto slopes = curve != nullptr ? curve->slopes(x) : std::nullopt;
    if (!slopes || !(slopes->lo == slopes->hi)) wanted.push_back(e);
  }
  return wanted;
}

std::vector<Interval> LinearBounds::narrowed(ValueId id, const std::vector<std::size_t>& entries) {
  const auto found =
      lower_of(id, 2 * entries.size(), [&](std::size_t r, double* to, std::size_t stride) {
        to[entries[r / 2] * stride] = r % 2 == 0 ? 1 : -1;
      });
  const Box& box = values_.at(id);
  std::vector<Interval> less;
  for (std::size_t e = 0; e < box.lower.doubles().size(); ++e)
    less.push_back({box.lower.doubles()[e], box.upper.doubles()[e]});
  for (std::size_t k = 0; k < entries.size(); ++k) {
    Interval& x = less[entries[k]];
    const Interval both = intersect(x, {found[2 * k], -found[2 * k + 1]});
    if (!is_nan(both)) x = both;
  }
  return less;
}

std::vector<Interval> LinearBounds::ranges(ValueId value) {
  std::vector<std::size_t> entries;
  const Box& box = values_.at(value);
  for (std::size_t e = 0; e < box.lower.doubles().size() && nodes_.moves(value); ++e) {
    if (box.lower.doubles()[e] < box.upper.doubles()[e]) entries.push_back(e);
  }
  return narrowed(value, entries);
}

void LinearBounds::find_ranges(const Options& options) {
  double left = options.most_work;
  std::vector<bool> done(graph_.values().size());
  for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
    const Node& node = graph_.nodes()[n];
    if (nodes_.at(n) != nullptr) continue;
    for (const ValueId id : node.inputs) {
      if (!nodes_.moves(id) || done[id.index] || maker_[id.index] == 0) continue;
      const std::vector<std::size_t> entries = entries_to_narrow(node, id);
      if (entries.empty() || options.stop()) continue;
      double work = 0;
      for (std::size_t m = 0; m < maker_[id.index]; ++m) {
        if (nodes_.moves(graph_.nodes()[m].outputs[0])) work += forms(m).work;
      }
      work *= 2 * static_cast<double>(entries.size());
      if (work > left) continue;
      left -= work;
      done[id.index] = true;
      values_.shrink(id, narrowed(id, entries));
    }
  }
}

void LinearBounds::narrow(ValueBoxes& others) {
  for (std::size_t v = 0; v < graph_.values().size(); ++v) {
    const ValueId id{static_cast<std::uint32_t>(v)};
    if (!nodes_.moves(id)) continue;
    const Box& mine = values_.at(id);
    const Box& theirs = others.at(id);
    std::vector<Interval> both;
    for (std::size_t e = 0; e < mine.lower.doubles().size(); ++e) {
      const Interval x{mine.lower.doubles()[e], mine.upper.doubles()[e]};
      const Interval meet = intersect(x, {theirs.lower.doubles()[e], theirs.upper.doubles()[e]});
      both.push_back(is_nan(meet) ? x : meet);
    }
    others.shrink(id, both);
  }
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "bounds/linear_bounds.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/parallel.h"
#include "base/rounding.h"
#include "bounds/linear_forms.h"
#include "ops/elementwise/elementwise.h"

namespace lipscope {
namespace {

constexpr std::size_t kTogether = 64;  // rows pulled back at once

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

void LinearBounds::Rows::add_shares(const Forms::OtherLines& other, std::size_t i,
                                    const double* entry, const double* shares, double* to,
                                    std::vector<double>& positive, std::vector<double>& negative) {
  for (std::size_t r = 0; r < count; ++r) {
    const double share = (positive[r] + negative[r]) * shares[r];
    if (share == 0) continue;
    const bool up = share > 0;
    to[r] += share * (up ? other.below[i] : other.above[i]);
    const double term = share * (up ? other.low[i] : other.high[i]);
    constant[r] += term;
    size[r] += std::fabs(term);
    loss[r] += std::fabs(share) * (up ? other.low_loss[i] : other.high_loss[i]) +
               std::fabs(entry[r]) * other.split_loss[i];
    (up ? positive : negative)[r] = entry[r] - share;
  }
}

void LinearBounds::Rows::add_offsets(const std::vector<double>& side, double offset,
                                     double loss_of_one) {
  if (offset == 0 && loss_of_one == 0) return;
  for (std::size_t r = 0; r < count; ++r) {
    if (side[r] == 0) continue;  // either may be infinite, and 0 times it is 0
    const double term = side[r] * offset;
    constant[r] += term;
    size[r] += std::fabs(term);
    loss[r] += std::fabs(side[r]) * loss_of_one;
  }
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
    for (const Forms::Block& block : out.blocks) {
      const ValueId id = node.inputs[block.input];
      std::vector<double>& to = rows.weights[id.index];
      if (to.empty())
        to.resize(static_cast<std::size_t>(element_count(graph_.value(id).type.shape)) * n);
    }
    for (std::size_t i = 0; i < out.low.size(); ++i) {
      charge(20 * static_cast<double>(n));
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
      if (mixed)
        rows.add_shares(*out.other, i, a, &(*rows.mix)[position][i * n],
                        &rows.weights[node.inputs[0].index][i * n], positive, negative);
      const auto spread = [&](const SparseRows& m, std::vector<double>& to, const double* factor) {
        for (auto k = static_cast<std::size_t>(m.begin[i]);
             k < static_cast<std::size_t>(m.begin[i + 1]); ++k)
          add_scaled(&to[m.columns[k] * n], factor, m.weights[k], n);
      };
      for (const Forms::Block& block : out.blocks) {
        std::vector<double>& to = rows.weights[node.inputs[block.input].index];
        if (block.below == block.above) {
          spread(*block.below, to, a);
        } else {
          if (any_positive) spread(*block.below, to, positive.data());
          if (any_negative) spread(*block.above, to, negative.data());
        }
      }
      if (any_positive) rows.add_offsets(positive, out.low[i], out.low_loss[i]);
      if (any_negative) rows.add_offsets(negative, out.high[i], out.high_loss[i]);
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
    checkpoint();
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
  const Elementwise* curve = node.op->elementwise();
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

// SPDX-License-Identifier: Apache-2.0
// Maxima as sums of ReLUs: max(a, b) = a + relu(b - a), min(a, b) = b - relu(b - a).
#include <algorithm>

#include "net/unit_reader.h"

namespace lipscope {
namespace {

RowMatrix selecting(Index cols, const std::vector<Index>& columns) {
  const auto rows = static_cast<Index>(columns.size());
  return collect_rows(rows, cols, [&](const VisitEntry& visit) {
    for (Index i = 0; i < rows; ++i) {
      const Index j = columns[static_cast<std::size_t>(i)];
      if (j >= 0) visit(i, j, 1, 1);
    }
  });
}

}  // namespace

bool UnitReader::add_max_pool(const Node& node, Windows windows) {
  if (node.outputs.size() > 1) return refuse(node, "a result that is not real");  // the indices
  std::vector<Interval> ranges = ranges_of(node.inputs[0]);
  AffineTerms terms = terms_of(node.inputs[0]);
  std::vector<Interval> offsets = offset_of(node.inputs[0]);
  const auto open = [](const std::vector<Index>& window) { return window.size() > 1; };
  for (int round = 0; std::ranges::any_of(windows, open); ++round) {
    if (!reduce_max_pairwise(node, round, windows, ranges, terms, offsets)) return false;
  }
  std::vector<Index> winners;
  std::vector<Interval> offset;
  for (const std::vector<Index>& window : windows) {
    winners.push_back(window[0]);
    if (biases_) offset.push_back(offsets[static_cast<std::size_t>(window[0])]);
  }
  set_offset(node.outputs[0], offset);
  return add_through(node, selecting(std::ssize(ranges), winners), terms,
                     values_[node.outputs[0].index]);
}

// Pairs of each window become one entry each; `windows`, `ranges`, `terms` and `offsets` are those
// of the entries that are left.
bool UnitReader::reduce_max_pairwise(const Node& node, int round, Windows& windows,
                                     std::vector<Interval>& ranges, AffineTerms& terms,
                                     std::vector<Interval>& offsets) {
  auto [a, b, first, meets, left, slopes] = pair_up(windows, ranges);
  if (!has_room(node, a.size())) return false;
  const auto old = std::ssize(ranges), duels = std::ssize(a);
  const RowMatrix leads = collect_rows(duels, old, [&](const VisitEntry& visit) {
    for (Index i = 0; i < duels; ++i) {
      visit(i, b[static_cast<std::size_t>(i)], 1, 1);
      visit(i, a[static_cast<std::size_t>(i)], -1, -1);
    }
  });
  AffineTerms lead, result;
  if (!add_through(node, leads, terms, lead) ||
      !add_through(node, selecting(old, first), terms, result))
    return false;
  append(duels, std::move(slopes), std::move(lead));
  net_.nodes.back().lead = {&node, round, node.inputs[0], {}};
  if (biases_) {
    const auto offset = [&](Index i) { return offsets[static_cast<std::size_t>(i)]; };
    for (std::size_t i = 0; i < a.size(); ++i)
      net_.nodes.back().bias.push_back(offset(b[i]) - offset(a[i]));
    std::vector<Interval> kept;
    for (const Index i : first) kept.push_back(offset(i));
    offsets = std::move(kept);
  }
  result.push_back({net_.nodes.size() - 1, selecting(duels, meets)});
  terms = std::move(result);
  ranges = std::move(left);
  return true;
}

bool UnitReader::add_max_or_min(const Node& node) {
  ValueId a = node.inputs[0], b = node.inputs[1];
  const ValueId result = node.outputs[0];
  const bool max = node.op->picks_extreme() == Extreme::kLargest;
  // A constant is what the ReLU is added to: then nothing has to get past it.
  if (max ? !moves(b) : !moves(a)) std::swap(a, b);
  const auto& shape = graph_.value(result).type.shape;
  if (graph_.value(a).type.shape != shape || graph_.value(b).type.shape != shape)
    return refuse(node, "operands of different shapes");
  const Index n = entries(result);
  const RowMatrix one = identity_rows(n);
  const RowMatrix minus = collect_rows(n, n, [&](const VisitEntry& visit) {
    for (Index i = 0; i < n; ++i) visit(i, i, -1, -1);
  });
  const auto key = std::make_pair(a.index, b.index);
  if (!leads_.contains(key)) {
    if (!has_room(node, static_cast<std::size_t>(n))) return false;
    AffineTerms lead;
    if (!add_through(node, one, terms_of(b), lead) || !add_through(node, minus, terms_of(a), lead))
      return false;
    append(n, lead_slopes_on(ranges_of(a), ranges_of(b)), std::move(lead));
    net_.nodes.back().lead = {&node, 0, a, b};
    const std::vector<Interval> from = offset_of(a), to = offset_of(b);
    for (std::size_t i = 0; i < from.size(); ++i) net_.nodes.back().bias.push_back(to[i] - from[i]);
    leads_[key] = net_.nodes.size() - 1;
  }
  AffineTerms terms;
  if (!add_through(node, one, terms_of(max ? a : b), terms)) return false;
  if (!add_through(node, max ? one : minus, {{leads_[key], std::nullopt}}, terms)) return false;
  values_[result.index] = std::move(terms);
  set_offset(result, offset_of(max ? a : b));
  return true;
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast/max_relax.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace lipscope {
namespace {

struct MaxForms {
  std::size_t below = 0;        // the entry that is the lower form
  std::vector<double> weights;  // of the upper form
  double offset = 0;
};

// max x <= M + sum of s_i (x_i - l_i) with M at or above all l_i: each term alone carries
// max(x_i, M) - M, which is convex, by its chord. At most two terms if M is the third largest end.
MaxForms max_forms(std::span<const Interval> x) {
  MaxForms forms{.weights = std::vector<double>(x.size())};
  std::vector<double> ends;
  double least = -kInf;
  const auto middle_of = [](const Interval& e) { return 0.5 * e.lo + 0.5 * e.hi; };
  for (std::size_t i = 0; i < x.size(); ++i) {
    ends.push_back(x[i].hi);
    least = std::max(least, x[i].lo);
    if (middle_of(x[i]) > middle_of(x[forms.below])) forms.below = i;
  }
  bool wins = true;
  for (std::size_t i = 0; i < x.size(); ++i)
    wins = wins && (i == forms.below || x[forms.below].lo >= x[i].hi);
  if (wins) {
    forms.weights[forms.below] = 1;  // it is the largest everywhere
    return forms;
  }
  std::ranges::sort(ends, std::greater<>());
  const double level = std::max(least, ends.size() > 2 ? ends[2] : -kInf);
  forms.offset = level;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(x[i].hi > level)) continue;
    const double slope = std::min(1.0, div_up(sub_up(x[i].hi, level), sub_down(x[i].hi, x[i].lo)));
    forms.weights[i] = slope;
    forms.offset = add_up(forms.offset, mul_up(-slope, x[i].lo));
  }
  return forms;
}

// Of sign * max x, for entries sign * x: one entry on one side, chords on the other.
void add_forms(std::span<const Interval> x, std::span<const Index> columns, Index row, double sign,
               AffineRowsBuilder& entry, AffineRowsBuilder& chords) {
  if (!std::ranges::all_of(x, is_bounded)) {
    entry.add_offset(row, kEntire);
    return;
  }
  const MaxForms forms = max_forms(x);
  entry.add(row, columns[forms.below], 1);
  for (std::size_t i = 0; i < x.size(); ++i) chords.add(row, columns[i], forms.weights[i]);
  chords.add_offset(row, point(sign * forms.offset));
}

}  // namespace

void relax_largest(std::span<const Interval> x, std::span<const Index> columns, Index row,
                   AffineRowsBuilder& lower, AffineRowsBuilder& upper) {
  add_forms(x, columns, row, 1, lower, upper);
}

void relax_smallest(std::span<const Interval> x, std::span<const Index> columns, Index row,
                    AffineRowsBuilder& lower, AffineRowsBuilder& upper) {
  std::vector<Interval> negated;
  for (const Interval& e : x) negated.push_back(-e);
  add_forms(negated, columns, row, -1, upper, lower);
}

std::optional<Relaxation> RelaxedGroups::relax(const GroupRelax& function) const {
  AffineRowsBuilder lower(std::ssize(entries_)), upper(std::ssize(entries_));
  for (std::size_t g = 0; g < entries_.size(); ++g)
    function(entries_[g], columns_[g], static_cast<Index>(g), lower, upper);
  return relaxation(lower, upper);
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Affine functions below and above the largest or smallest of some entries [pointwise-9].
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ops/facets/affine_rows.h"

namespace lipscope {

// Writes row `row` of both sides; x[i] is the interval of the entry in column columns[i].
void relax_largest(std::span<const Interval> x, std::span<const Index> columns, Index row,
                   AffineRowsBuilder& lower, AffineRowsBuilder& upper);
void relax_smallest(std::span<const Interval> x, std::span<const Index> columns, Index row,
                    AffineRowsBuilder& lower, AffineRowsBuilder& upper);

using GroupRelax = std::function<void(std::span<const Interval>, std::span<const Index>, Index,
                                      AffineRowsBuilder&, AffineRowsBuilder&)>;

// Functions of groups of entries, gathered entry by entry.
class RelaxedGroups {
 public:
  explicit RelaxedGroups(Index groups)
      : entries_(static_cast<std::size_t>(groups)), columns_(entries_.size()) {}
  void add(Index group, const Interval& x, Index column) {
    entries_[static_cast<std::size_t>(group)].push_back(x);
    columns_[static_cast<std::size_t>(group)].push_back(column);
  }
  [[nodiscard]] std::optional<Relaxation> relax(const GroupRelax& function) const;

 private:
  std::vector<std::vector<Interval>> entries_;
  std::vector<std::vector<Index>> columns_;
};

}  // namespace lipscope

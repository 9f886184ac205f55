// SPDX-License-Identifier: Apache-2.0
// Making the forms of a relaxation (Op::relax).
#pragma once

#include <optional>
#include <vector>

#include "base/interval.h"
#include "lipscope/op.h"

namespace lipscope {

// Weights may come in any order, and several for one column.
class AffineRowsBuilder {
 public:
  explicit AffineRowsBuilder(Index rows) : offsets_(static_cast<std::size_t>(rows), point(0)) {}
  void add(Index row, Index column, double weight) {
    if (weight == 0) return;
    rows_.push_back(row);
    columns_.push_back(column);
    weights_.push_back(weight);
  }
  void add_offset(Index row, const Interval& more) {
    offsets_[static_cast<std::size_t>(row)] += more;
  }
  // With the lower or the upper ends of the offsets.
  [[nodiscard]] AffineRows finish(bool upper) const;

 private:
  std::vector<Interval> offsets_;
  std::vector<Index> rows_, columns_;
  std::vector<double> weights_;
};

// Nothing where an offset is not finite.
[[nodiscard]] std::optional<Relaxation> relaxation(const AffineRowsBuilder& lower,
                                                   const AffineRowsBuilder& upper);

// A function of two numbers is weight_a a + weight_b b plus a member of `offset`.
struct PairPlane {
  double weight_a = 0, weight_b = 0;
  Interval offset = point(0);
};
// Of c a b, for bounded intervals [pointwise-7].
[[nodiscard]] PairPlane product_plane(const Interval& a, const Interval& b, double c = 1);
// Of a / b, for b without 0 [pointwise-8].
[[nodiscard]] PairPlane quotient_plane(const Interval& a, const Interval& b);

}  // namespace lipscope

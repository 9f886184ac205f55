// SPDX-License-Identifier: Apache-2.0
#include "ops/facets/affine_rows.h"

#include <cmath>

namespace lipscope {

AffineRows AffineRowsBuilder::finish(bool upper) const {
  AffineRows rows;
  rows.begin.assign(offsets_.size() + 1, 0);
  for (const Index row : rows_) ++rows.begin[static_cast<std::size_t>(row) + 1];
  for (std::size_t i = 0; i < offsets_.size(); ++i) rows.begin[i + 1] += rows.begin[i];
  rows.columns.resize(rows_.size());
  rows.weights.resize(rows_.size());
  std::vector<Index> next = rows.begin;
  for (std::size_t k = 0; k < rows_.size(); ++k) {
    const auto to = static_cast<std::size_t>(next[static_cast<std::size_t>(rows_[k])]++);
    rows.columns[to] = columns_[k];
    rows.weights[to] = weights_[k];
  }
  for (const Interval& offset : offsets_) rows.offsets.push_back(upper ? offset.hi : offset.lo);
  return rows;
}

std::optional<Relaxation> relaxation(const AffineRowsBuilder& lower,
                                     const AffineRowsBuilder& upper) {
  Relaxation forms{lower.finish(false), upper.finish(true)};
  for (const AffineRows* rows : {&forms.lower, &forms.upper}) {
    for (const double x : rows->offsets) {
      if (!std::isfinite(x)) return std::nullopt;
    }
    for (const double x : rows->weights) {
      if (!std::isfinite(x)) return std::nullopt;
    }
  }
  return forms;
}

PairPlane product_plane(const Interval& a, const Interval& b, double c) {
  const double x = midpoint(a), y = midpoint(b);
  const Interval slope_a = point(c) * y, slope_b = point(c) * x;
  const bool moves_a = a.lo < a.hi, moves_b = b.lo < b.hi;
  PairPlane plane;
  // A factor that is one number needs no weight of its own.
  if (moves_a) {
    plane.weight_a = midpoint(slope_a);
    plane.offset += (slope_a - plane.weight_a) * a;
  }
  if (moves_b || !moves_a) {
    plane.weight_b = midpoint(slope_b);
    plane.offset += (slope_b - plane.weight_b) * b;
  }
  if (moves_a && moves_b) {
    const double rest = mul_up(std::fabs(c), mul_up(radius_up(a), radius_up(b)));
    plane.offset += Interval{-rest, rest} - slope_b * y;
  }
  return plane;
}

PairPlane quotient_plane(const Interval& a, const Interval& b) {
  const double x = midpoint(a), y = midpoint(b);
  const Interval slope_a = 1 / point(y), here = x / point(y), slope_b = -here / point(y);
  PairPlane plane{.weight_a = midpoint(slope_a), .weight_b = midpoint(slope_b)};
  if (b.lo == b.hi) {
    plane.weight_b = 0;
    plane.offset = (slope_a - plane.weight_a) * a;
    return plane;
  }
  // a/b - x/y - (a - x)/y + x (b - y)/y^2 = (x/y - a/b) (b - y)/y.
  plane.offset = (here - a / b) * ((b - y) / point(y)) - slope_b * y;
  plane.offset += (slope_a - plane.weight_a) * a + (slope_b - plane.weight_b) * b;
  return plane;
}

}  // namespace lipscope

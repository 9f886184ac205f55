// SPDX-License-Identifier: Apache-2.0
// Small dense matrices of intervals.
#pragma once

#include <span>
#include <vector>

#include "base/interval.h"
#include "lipscope/tensor.h"

namespace lipscope {

// Row-major.
struct IntervalMatrix {
  Index rows = 0, cols = 0;
  std::vector<Interval> entries;

  IntervalMatrix() = default;
  IntervalMatrix(Index r, Index c)
      : rows(r), cols(c), entries(static_cast<std::size_t>(r * c), point(0)) {}
  IntervalMatrix(Index r, Index c, std::span<const double> exact);

  [[nodiscard]] Interval& operator()(Index i, Index j) {
    return entries[static_cast<std::size_t>(i * cols + j)];
  }
  [[nodiscard]] const Interval& operator()(Index i, Index j) const {
    return entries[static_cast<std::size_t>(i * cols + j)];
  }
  [[nodiscard]] std::span<const Interval> row(Index i) const {
    return std::span(entries).subspan(static_cast<std::size_t>(i * cols),
                                      static_cast<std::size_t>(cols));
  }
};

// The same as middles and radii.
struct CentredMatrix {
  Index rows = 0, cols = 0;
  std::vector<double> middle, radius;

  CentredMatrix() = default;
  CentredMatrix(Index r, Index c)
      : rows(r), cols(c), middle(static_cast<std::size_t>(r * c)), radius(middle.size()) {}
  explicit CentredMatrix(const IntervalMatrix& a);
};

[[nodiscard]] IntervalMatrix operator*(const IntervalMatrix& a, const IntervalMatrix& b);
[[nodiscard]] IntervalMatrix transposed(const IntervalMatrix& a);
// Each row plus the vector.
[[nodiscard]] IntervalMatrix with_bias(IntervalMatrix a, std::span<const Interval> bias);
[[nodiscard]] std::vector<double> midpoints(std::span<const Interval> entries);

// Rows that make a piece of work worth a thread, for so many operations on intervals per row.
[[nodiscard]] inline Index rows_at_once(Index operations) {
  constexpr Index kWorthwhile = Index{1} << 15;
  return 1 + kWorthwhile / (1 + operations);
}

// Upper bounds over all members of the enclosure.
[[nodiscard]] double length_up(std::span<const Interval> x);
[[nodiscard]] double spectral_norm_up(const IntervalMatrix& a);
[[nodiscard]] double spectral_norm_up(const CentredMatrix& a);
// Lower bound for every member.
[[nodiscard]] double length_down(std::span<const Interval> x);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Matrices held by rows with what is known of the rounding of their entries.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lipscope/tensor.h"

namespace lipscope {

// All entries, or those that may not be zero with their columns (increasing in each row). The true
// entry lies within `radius` of `weights`; an empty radius is zero.
struct RowMatrix {
  Index rows = 0, cols = 0;
  std::vector<double> weights, radius;
  std::vector<std::size_t> begin;     // of each row, and the end; empty: all entries
  std::vector<std::int32_t> columns;  // as long as weights

  [[nodiscard]] bool dense() const { return begin.empty(); }
  [[nodiscard]] std::size_t row_begin(Index i) const {
    return dense() ? static_cast<std::size_t>(i * cols) : begin[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] std::size_t row_end(Index i) const { return row_begin(i + 1); }
  // body(column, place in weights).
  template <class Body>
  void for_row(Index i, Body&& body) const {
    const std::size_t first = row_begin(i), last = row_end(i);
    for (std::size_t at = first; at < last; ++at)
      body(dense() ? static_cast<Index>(at - first) : Index{columns[at]}, at);
  }
  [[nodiscard]] double radius_at(std::size_t at) const { return radius.empty() ? 0 : radius[at]; }
};

// visit(row, column, lower, upper) as of Op::matrix.
using VisitEntry = std::function<void(Index, Index, double, double)>;
// Calls `list` twice with a visitor: entries may come in any order and in pieces. Ends that are not
// finite give entries that are not.
[[nodiscard]] RowMatrix collect_rows(Index rows, Index cols,
                                     const std::function<void(const VisitEntry&)>& list);

[[nodiscard]] RowMatrix product(const RowMatrix& a, const RowMatrix& b);
[[nodiscard]] double product_cost(const RowMatrix& a, const RowMatrix& b);  // multiplications
[[nodiscard]] RowMatrix sum(const RowMatrix& a, const RowMatrix& b);
[[nodiscard]] RowMatrix identity_rows(Index n);
// The rows and columns that are kept, in their order.
[[nodiscard]] RowMatrix kept(const RowMatrix& a, const std::vector<bool>& rows,
                             const std::vector<bool>& cols);
[[nodiscard]] RowMatrix transposed(const RowMatrix& a);

// y += A x for x with `width` numbers per row; y += A'x for a dense A. Plain arithmetic. Both share
// the work between threads.
void add_product(const RowMatrix& a, const double* x, Index width, double* y);
void add_transposed_product(const RowMatrix& a, const double* x, Index width, double* y);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// What softmax.h is made of: rows of adjacent entries, in vector code where a row allows it and in
// plain code for any row. Bounds of the errors: docs/theory/softmax-kernel.md.
#pragma once

#include <vector>

#include "lipscope/tensor.h"

namespace lipscope::softmax_detail {

enum class Output : std::uint8_t { kSoftmax, kLogSoftmax, kLogSumExp };

template <class T>
struct Rows {
  Index rows = 0, length = 0;
  Index x_stride = 0, y_stride = 0;  // entries from one row to the next
  Index first_row = 0;               // what messages call row 0
  const T* x = nullptr;
  T* y = nullptr;  // may be x; kLogSumExp: one entry per row
  double lambda = 1;
  bool accurate = false;
  Output output = Output::kSoftmax;
};

// The sum of exp(lambda x_i) over a row is (hi + lo) 2^exponent, exponent an integer.
struct RowSum {
  double hi = 0, lo = 0, exponent = 0;
};

// Computes the rows that suit the vector code and appends the others to `left`: rows with a NaN or
// an infinite maximum, or with lambda or the maximum out of range. Of a row in `left` with x == y
// only the NaN are still in their place, when there are any; other rows in `left` are untouched.
void vector_rows(const Rows<float>& job, std::vector<Index>& left);
void vector_rows(const Rows<double>& job, std::vector<Index>& left);

// As accurate as [softmax-kernel-5] says. False: not a row for the vector code.
bool vector_sum(const double* x, Index length, double lambda, RowSum& sum);

// One row of any kind; throws Error naming the row and the column of a NaN.
template <class T>
void plain_row(const Rows<T>& job, Index row);
extern template void plain_row<float>(const Rows<float>& job, Index row);
extern template void plain_row<double>(const Rows<double>& job, Index row);

// The sum of exp(lambda (x_i - top)), `top` being the largest entry (the smallest for lambda < 0)
// and finite; no NaN in the row. Entries at -inf (after multiplication by lambda) count 0.
RowSum plain_sum(const double* x, Index length, double lambda, double top);
// exp(lambda (x - top)), within [softmax-kernel-6].
double plain_term(double x, double lambda, double top);

}  // namespace lipscope::softmax_detail

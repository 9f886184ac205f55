// SPDX-License-Identifier: Apache-2.0
// Sums of products over index ranges: matrix products, batched and broadcast, traces, diagonals,
// transposes are all
//   out[i . s_out] = alpha * sum over i of a[i . s_a] * b[i . s_b] * ...
// for index tuples i, with one stride per index and array. A stride of 0 means that the array does
// not depend on the index. Because the form is symmetric, the adjoint with respect to an operand is
// the same sum with that operand and the output exchanged.
#pragma once

#include <vector>

#include "lipscope/tensor.h"

namespace lipscope {

// One index of a sum of products of two arrays.
struct LoopDim {
  Index extent, a, b, out;  // extent and strides
};

// Adds to the entries of `out` the loops reach, or overwrites them (with 0 when a summation range
// is empty). Different index tuples outside the summed indices must reach different entries. Uses
// BLAS for the largest matrix product inside the loops. T: double, float or Index (wrap-around).
template <class T>
void contract(std::vector<LoopDim> dims, T alpha, const T* a, const T* b, T* out, bool overwrite);

template <class T>
struct Factor {
  const T* data;
  std::vector<Index> strides;  // one per index
};

// The same for any number (at least one) of factors, multiplied in pairs.
template <class T>
void contract_all(const std::vector<Index>& extents, std::vector<Factor<T>> factors, T alpha,
                  const std::vector<Index>& out_strides, T* out, bool overwrite);

}  // namespace lipscope

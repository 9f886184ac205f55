// SPDX-License-Identifier: Apache-2.0
// The family of sums of products of inputs:
//   out = sum over terms of coefficient * (contraction of some inputs),
// each input being linear in the output when the others are fixed. MatMul, Gemm and Einsum are
// descriptions of this form; evaluation and both derivatives are one contraction with the roles
// exchanged (linalg/contraction.h).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "ops/kind.h"

namespace lipscope {

// Indices of the contraction ("labels") with their extents, and the stride of each label in each
// input and in the output (0: the array does not have it, or is broadcast along it).
struct Multilinear {
  struct Term {
    double coefficient = 1;
    std::vector<std::size_t> inputs;
  };
  std::string_view name;
  ValueType out;
  std::vector<Index> extents = {};
  std::vector<std::vector<Index>> strides = {};  // by input
  std::vector<Index> out_strides = {};
  std::vector<Term> terms = {};
};

[[nodiscard]] std::shared_ptr<const Op> make_multilinear(Multilinear form);
// Null for an operator of another family.
[[nodiscard]] const Multilinear* as_multilinear(const Op& op);

// The facets of the operator.
[[nodiscard]] std::optional<std::vector<Box>> multilinear_range(const Multilinear& form,
                                                                std::span<const Box> in);
[[nodiscard]] std::optional<Gain> multilinear_gain(const Multilinear& form, const GainQuery& query);

bool multilinear_matrix(const Multilinear& form, const MatrixQuery& query,
                        const EntryVisitor& visit);

// Row-major strides of a shape; 0 where the dimension is 1.
[[nodiscard]] std::vector<Index> label_strides(const Shape& shape);

}  // namespace lipscope

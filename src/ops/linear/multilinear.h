// SPDX-License-Identifier: Apache-2.0
// The family of sums of products of inputs:
//   out = sum over terms of coefficient * (contraction of some inputs),
// each input being linear in the output when the others are fixed. MatMul, Gemm and Einsum are
// descriptions of this form; evaluation and both derivatives are one contraction with the roles
// exchanged (linalg/tensor/contraction.h).
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "ops/facets/machine_map.h"
#include "ops/kind.h"

namespace lipscope {

// Op::multilinear. Indices of the contraction ("labels") with their extents, and the stride of each
// label in each input and in the output (0: the array does not have it, or is broadcast along it).
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

// The facets of the operator.
[[nodiscard]] std::optional<std::vector<Box>> multilinear_range(const Multilinear& form,
                                                                std::span<const Box> in);
[[nodiscard]] std::optional<Gain> multilinear_gain(const Multilinear& form, const GainQuery& query);

bool multilinear_matrix(const Multilinear& form, const MatrixQuery& query,
                        const EntryVisitor& visit);
// Null for sums that can be computed in more ways than a matrix product.
[[nodiscard]] std::unique_ptr<const MachineStep> multilinear_step(const Multilinear& form,
                                                                  const Machine& machine);
// For terms of one or two inputs.
[[nodiscard]] std::optional<Relaxation> multilinear_relax(const Multilinear& form,
                                                          std::span<const Box> in);

// body(output entry, entry of each input; of those the term has) for each product of a term.
// `band`: so many numbers of the last label at a time, in which both sides of a transposition stay
// near.
template <class Body>
void for_each_product(const Multilinear& form, const Multilinear::Term& term, Body&& body,
                      Index band = std::numeric_limits<Index>::max()) {
  // Labels in which nothing of the term moves belong to other terms.
  std::vector<std::size_t> labels;
  for (std::size_t l = 0; l < form.extents.size(); ++l) {
    bool used = form.out_strides[l] != 0;
    for (const std::size_t k : term.inputs) used = used || form.strides[k][l] != 0;
    if (used && form.extents[l] == 0) return;
    if (used && form.extents[l] != 1) labels.push_back(l);
  }
  const std::size_t inputs = form.strides.size();
  // The last two labels in loops of their own.
  struct Loop {
    Index count = 1, row = 0;
    std::vector<Index> place;
  };
  const auto last_loop = [&] {
    Loop loop{1, 0, std::vector<Index>(inputs, 0)};
    if (labels.empty()) return loop;
    const std::size_t l = labels.back();
    labels.pop_back();
    for (std::size_t k = 0; k < inputs; ++k) loop.place[k] = form.strides[k][l];
    loop.count = form.extents[l];
    loop.row = form.out_strides[l];
    return loop;
  };
  const Loop inner = last_loop(), middle = last_loop();
  std::vector<Index> at(labels.size(), 0), begin(inputs, 0), place(inputs);
  Index row = 0;
  for (bool more = true; more;) {
    for (Index first = 0; first < inner.count; first += std::min(band, inner.count)) {
      const Index count = std::min(band, inner.count - first);
      for (Index m = 0; m < middle.count; ++m) {
        for (std::size_t k = 0; k < inputs; ++k)
          place[k] = begin[k] + m * middle.place[k] + first * inner.place[k];
        const Index start = row + m * middle.row + first * inner.row;
        for (Index i = 0; i < count; ++i) {
          body(start + i * inner.row, std::span<const Index>(place));
          for (std::size_t k = 0; k < inputs; ++k) place[k] += inner.place[k];
        }
      }
    }
    more = false;
    for (std::size_t i = labels.size(); i-- > 0 && !more;) {
      const std::size_t l = labels[i];
      more = ++at[i] < form.extents[l];
      const Index step = more ? 1 : 1 - form.extents[l];
      if (!more) at[i] = 0;
      row += step * form.out_strides[l];
      for (std::size_t k = 0; k < inputs; ++k) begin[k] += step * form.strides[k][l];
    }
  }
}

// Row-major strides of a shape; 0 where the dimension is 1.
[[nodiscard]] std::vector<Index> label_strides(const Shape& shape);

}  // namespace lipscope

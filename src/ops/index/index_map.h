// SPDX-License-Identifier: Apache-2.0
// The family of linear index maps: every output entry is a weighted sum of entries of one input, or
// a constant, with weights fixed when the operator is made. Reshapes, transpositions, slices, pads,
// gathers with constant indices, resizes and average pools are all of this kind; Split has several
// such outputs and Concat is the adjoint of Split.
//
// The matrix of a map is I (x) M (x) I: the same M for each of `outer` blocks, acting on runs of
// `inner` entries. M is held in the cheapest of several forms; for_each_term lists its entries
// whatever the form.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "graph/exact_map.h"
#include "ops/dispatch.h"
#include "ops/facets/machine_map.h"
#include "ops/facets/wide_map.h"
#include "ops/kind.h"
#include "ops/linear/bilinear_range.h"
#include "ops/windows/padding.h"
#include "ops/windows/taps.h"

namespace lipscope {

class IndexMap {
 public:
  // The constant entries get where they have no source: one for floating, one for integer storage.
  struct Fill {
    double real = 0;
    Index integer = 0;
    bool stored = true;  // a number of the file, not computed from some
  };
  struct Blocks {
    Index outer = 1, inner = 1;
  };
  struct Identity {};
  struct Constant {};  // no sources at all
  // Output entry (i_0, i_1, ...) of shape `dims` is input entry offset + sum_a i_a strides_a.
  struct Strided {
    Shape dims;
    std::vector<Index> strides;
    Index offset;
  };
  struct Gather {
    std::vector<std::int32_t> sources;  // -1: the fill
  };
  // Row i: constants[i] + sum over j in [begin[i], begin[i+1]) of weights[j] x[sources[j]].
  struct Weighted {
    std::vector<std::int32_t> begin, sources;
    std::vector<double> weights;
    std::vector<double> lower, upper;  // of the weights; empty: they are exact
    std::vector<double> constants;     // empty: all zero
  };
  struct Average {
    Taps taps;
    std::vector<double> weights;  // of each output entry of a plane, for all its sources
  };

  [[nodiscard]] static IndexMap identity(Index size);
  [[nodiscard]] static IndexMap constant(Index rows, Index cols, Fill fill);
  // Merges axes; a copy in order becomes the identity.
  [[nodiscard]] static IndexMap strided(Index cols, const Shape& dims,
                                        const std::vector<Index>& strides, Index offset = 0);
  // `cols` and the sources count within M: runs of `inner` entries of one block.
  [[nodiscard]] static IndexMap gather(Index cols, std::span<const Index> sources,
                                       Blocks blocks = {1, 1}, Fill fill = {0, 0, true});
  [[nodiscard]] static IndexMap weighted(Index cols, Weighted rows, Blocks blocks = {1, 1});
  [[nodiscard]] static IndexMap average(Taps taps, std::vector<double> weights, Index outer);

  // Of the whole map.
  [[nodiscard]] Index rows() const noexcept { return blocks_.outer * rows_ * blocks_.inner; }
  [[nodiscard]] Index cols() const noexcept { return blocks_.outer * cols_ * blocks_.inner; }
  [[nodiscard]] Blocks blocks() const noexcept { return blocks_; }
  [[nodiscard]] bool has_weights() const noexcept {
    return std::holds_alternative<Weighted>(form_) || std::holds_alternative<Average>(form_);
  }
  [[nodiscard]] bool is_identity() const noexcept {
    return std::holds_alternative<Identity>(form_);
  }
  // The weights are reciprocals of integers, rounded to nearest.
  [[nodiscard]] bool is_average() const noexcept { return std::holds_alternative<Average>(form_); }
  [[nodiscard]] const Fill& fill() const noexcept { return fill_; }

  // M alone: its size and its non-zero entries, visit(row, col, weight), in no particular order. An
  // entry may come in several pieces (to be added).
  [[nodiscard]] Index block_rows() const noexcept { return rows_; }
  [[nodiscard]] Index block_cols() const noexcept { return cols_; }
  template <class Visit>
  void for_each_term(Visit&& visit) const;
  // visit(row, col, interval around the weight).
  template <class Visit>
  void for_each_bounded_term(Visit&& visit) const;
  // The entries of the whole matrix between bounds; transposed on request.
  void visit_entries(bool transposed, const EntryVisitor& visit) const;
  // The constant added to row i of M.
  [[nodiscard]] double constant_at(Index row) const;

  // One block of `outer`: y = M x, plus the constant if asked. T: double, float, or Index (maps
  // without weights).
  template <class T>
  void apply(const T* x, T* y, bool with_constant) const;
  // One block: x += M' y.
  void add_adjoint(const double* y, double* x) const;
  // One block of a map that copies entries: x[source of i] = y[i], other entries stay.
  template <class T>
  void place(const T* y, T* x) const;

  // visit(row, col, bounds of the weight) for the entries of the whole matrix.
  template <class Visit>
  void for_each_entry(Visit&& visit) const {
    for_each_bounded_term([&](Index row, Index col, const Interval& weight) {
      for (Index o = 0; o < blocks_.outer; ++o) {
        for (Index i = 0; i < blocks_.inner; ++i) {
          visit((o * rows_ + row) * blocks_.inner + i, (o * cols_ + col) * blocks_.inner + i,
                weight);
        }
      }
    });
  }

  // The operator norm of the whole map, rounded up [linear-3], [linear-4].
  [[nodiscard]] double norm_up(const NormPair& norms, ProofSteps* steps = nullptr) const;
  // The values the whole map takes on a box of doubles, constant included.
  [[nodiscard]] Bounds range(const BoundsView& x) const;

 private:
  template <class Visit>
  static void for_each_run(const Strided& form, Visit&& visit);

  Blocks blocks_;
  Index rows_ = 0, cols_ = 0;
  Fill fill_;
  std::variant<Identity, Constant, Strided, Gather, Weighted, Average> form_;
};

// One input, one or several outputs.
class IndexMapOp final : public Op, public WideMap, public MachineMap, public ExactMap {
 public:
  struct Output {
    ValueType type;
    IndexMap map;
  };
  IndexMapOp(std::string name, std::vector<Output> outputs, std::optional<Padding> padding = {})
      : name_(std::move(name)), outputs_(std::move(outputs)), padding_(std::move(padding)) {}

  const IndexMapOp* index_map() const override { return this; }
  [[nodiscard]] std::span<const Output> outputs() const noexcept { return outputs_; }
  [[nodiscard]] const std::optional<Padding>& padding() const noexcept { return padding_; }

  std::string_view name() const override { return name_; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  void eval(const EvalArgs& args) const override;
  bool differentiable() const override { return true; }
  void jvp(const JvpArgs& args) const override;
  void vjp(const VjpArgs& args) const override;
  std::optional<std::vector<Box>> range(std::span<const Box> in) const override;
  std::optional<Gain> gain(const GainQuery& query) const override;
  bool matrix(const MatrixQuery& query, const EntryVisitor& visit) const override;
  const WideMap* wide_map() const override { return this; }
  bool push_wide(std::span<const WideTensor* const> in, std::span<WideTensor> out) const override;
  const MachineMap* machine_map() const override { return this; }
  // Copies and averages; null for other weights. Borrows the operator.
  std::unique_ptr<const MachineStep> machine_step(const Machine& machine,
                                                  std::size_t output) const override;
  const ExactMap* exact_map() const override { return this; }
  // Of copies and averages.
  bool push_exact(std::span<const ExactTensor* const> in,
                  std::span<ExactTensor> out) const override;

 private:
  std::string name_;
  std::vector<Output> outputs_;
  std::optional<Padding> padding_;  // of a Pad
};

// The operator for a node with one output whose entries come from input 0.
[[nodiscard]] Imported index_map_op(const OnnxNode& node, Shape shape, IndexMap map);
// The same entries under another shape.
[[nodiscard]] Imported reshape_op(const OnnxNode& node, Shape shape);

// Entries per step of each axis, row-major.
[[nodiscard]] std::vector<Index> row_major_strides(const Shape& shape);
// Product of dimensions [begin, end).
[[nodiscard]] Index dims_product(const Shape& shape, Index begin, Index end);
// Refuses outputs no machine could hold, as fuzzed or hostile files ask for.
void check_output_size(const OnnxNode& node, const Shape& shape);

template <class Visit>
void IndexMap::for_each_run(const Strided& form, Visit&& visit) {
  const std::size_t rank = form.dims.size();
  const Index length = form.dims[rank - 1];
  Index rows = 1;
  for (std::size_t a = 0; a + 1 < rank; ++a) rows *= form.dims[a];
  if (length == 0) return;
  std::vector<Index> at(rank, 0);
  Index source = form.offset;
  for (Index row = 0; row < rows; ++row) {
    visit(row * length, source, length, form.strides[rank - 1]);
    for (std::size_t a = rank - 1; a-- > 0;) {
      source += form.strides[a];
      if (++at[a] < form.dims[a]) break;
      source -= form.strides[a] * form.dims[a];
      at[a] = 0;
    }
  }
}

template <class Visit>
void IndexMap::for_each_term(Visit&& visit) const {
  if (is_identity()) {
    for (Index i = 0; i < rows_; ++i) visit(i, i, 1.0);
  } else if (const auto* strided_form = std::get_if<Strided>(&form_)) {
    for_each_run(*strided_form, [&](Index row, Index source, Index length, Index step) {
      for (Index i = 0; i < length; ++i) visit(row + i, source + i * step, 1.0);
    });
  } else if (const auto* list = std::get_if<Gather>(&form_)) {
    for (Index i = 0; i < rows_; ++i) {
      const Index source = list->sources[static_cast<std::size_t>(i)];
      if (source >= 0) visit(i, source, 1.0);
    }
  } else if (const auto* csr = std::get_if<Weighted>(&form_)) {
    for (std::size_t i = 0; i + 1 < csr->begin.size(); ++i) {
      for (auto j = static_cast<std::size_t>(csr->begin[i]);
           j < static_cast<std::size_t>(csr->begin[i + 1]); ++j) {
        visit(static_cast<Index>(i), Index{csr->sources[j]}, csr->weights[j]);
      }
    }
  } else if (const auto* pool = std::get_if<Average>(&form_)) {
    for (const Tap& tap : pool->taps.taps) {
      for (Index i = 0; i < tap.length; ++i) {
        visit(tap.out + i, tap.in + i * pool->taps.step,
              pool->weights[static_cast<std::size_t>(tap.out + i)]);
      }
    }
  }
}

template <class Visit>
void IndexMap::for_each_bounded_term(Visit&& visit) const {
  const auto* csr = std::get_if<Weighted>(&form_);
  if (csr != nullptr && !csr->lower.empty()) {
    for (std::size_t i = 0; i + 1 < csr->begin.size(); ++i) {
      for (auto j = static_cast<std::size_t>(csr->begin[i]);
           j < static_cast<std::size_t>(csr->begin[i + 1]); ++j) {
        visit(static_cast<Index>(i), Index{csr->sources[j]},
              Interval{csr->lower[j], csr->upper[j]});
      }
    }
    return;
  }
  for_each_term([&](Index row, Index col, double weight) {
    int exponent = 0;
    const bool rounded = is_average() && std::frexp(weight, &exponent) != 0.5;
    visit(row, col,
          rounded ? Interval{next_down(weight), next_up(weight)} : Interval{weight, weight});
  });
}

}  // namespace lipscope

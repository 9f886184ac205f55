// SPDX-License-Identifier: Apache-2.0
// The family of functions applied to each row of a tensor along one axis (or some merged axes):
// softmax and its kin, norms of rows. An operator of this family is a small struct F working on one
// row in double:
//
//   struct Softmax {
//     static constexpr std::string_view kName = "Softmax";
//     void value(std::span<double> row) const;                          // x -> y, in place
//     void push(Row x, Row y, Row dx, std::span<double> dy) const;      // J dx
//     void pull(Row x, Row y, Row g, std::span<double> gx) const;       // J' g
//     static constexpr std::string_view kTheorem = "normalisation-4";
//     void range(const Group& x, std::span<Interval> y) const;          // a row in a box
//     double gain(const Group& x, const NormPair& norms) const;         // of a row that moves
//   };
//
// The last three may be missing.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>
#include <vector>

#include "linalg/norm/operator_norm.h"
#include "ops/dispatch.h"
#include "ops/kind.h"
#include "ops/rows/row_bounds.h"

namespace lipscope {

using Row = std::span<const double>;

// A tensor as [outer, length, inner]; a row runs over the middle index.
struct RowSplit {
  Index outer = 1, length = 1, inner = 1;

  // Rows along dimensions [begin, end).
  [[nodiscard]] static RowSplit of(const Shape& shape, Index begin, Index end) {
    RowSplit split;
    for (Index i = 0; i < static_cast<Index>(shape.size()); ++i) {
      (i < begin ? split.outer
       : i < end ? split.length
                 : split.inner) *= shape[static_cast<std::size_t>(i)];
    }
    return split;
  }
  [[nodiscard]] Index rows() const noexcept { return outer * inner; }
  [[nodiscard]] Index start(Index row) const noexcept {
    return row / inner * length * inner + row % inner;
  }
};

inline double dot(Row a, Row b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// x -> log(softmax(x)). A row of -inf alone gives NaN, as does +inf or NaN anywhere in it.
inline void log_softmax(std::span<double> row) {
  if (row.empty()) return;
  const double top = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const double x : row) sum += std::exp(x - top);
  const double log_sum = std::log(sum);
  for (double& x : row) x = (x - top) - log_sum;
}

template <class F>
class RowOp final : public Op {
 public:
  RowOp(F function, RowSplit split) : f_(function), split_(split) {}

  std::string_view name() const override { return F::kName; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override { return {in[0]}; }

  void eval(const EvalArgs& args) const override {
    for_real(args.in[0].storage, [&](auto zero) {
      using T = decltype(zero);
      over_rows(args.count, [&](Index b, Index start, std::vector<double>& buffer) {
        const std::span<double> row = take(buffer, 0);
        load(args.in[0].sample<T>(b) + start, row);
        f_.value(row);
        store<T>(row, args.out[0].sample<T>(b) + start);
      });
    });
  }

  bool differentiable() const override { return true; }
  void jvp(const JvpArgs& args) const override {
    transport(args.in[0], args.out[0], args.tangent_in[0], args.tangent_out[0], args.count, true);
  }
  void vjp(const VjpArgs& args) const override {
    transport(args.in[0], args.out[0], args.grad_out[0], args.grad_in[0], args.count, false);
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    if constexpr (!kBounded) {
      return std::nullopt;
    } else {
      BoxBuilder out(in[0].lower.shape());
      std::vector<Interval> row(static_cast<std::size_t>(split_.length));
      for_each_group(in[0], [&](Index start, const Group& group) {
        f_.range(group, row);
        for (std::size_t i = 0; i < row.size(); ++i) {
          out.set(start + static_cast<Index>(i) * split_.inner, row[i]);
        }
      });
      return std::vector<Box>{std::move(out).finish()};
    }
  }
  // Rows do not touch each other: a block-diagonal map [normalisation-1].
  std::optional<Gain> gain(const GainQuery& query) const override {
    if constexpr (!kBounded) {
      return std::nullopt;
    } else {
      std::vector<double> blocks;
      for_each_group(query.in[0], [&](Index, const Group& group) {
        blocks.push_back(group.moves() ? f_.gain(group, query.norms) : 0);
      });
      return Gain{diagonal_norm_up(blocks, query.norms), F::kTheorem};
    }
  }

 private:
  static constexpr bool kBounded = requires { F::kTheorem; };
  static constexpr std::size_t kBuffers = 4;

  // body(first entry, the row) for each row of a box; none if rows are empty.
  template <class Body>
  void for_each_group(const Box& box, Body&& body) const {
    const BoxEntries x(box);
    if (split_.length == 0) return;
    std::vector<double> lower(static_cast<std::size_t>(split_.length)), upper(lower.size());
    for (Index row = 0; row < split_.rows(); ++row) {
      const Index start = split_.start(row);
      for (std::size_t i = 0; i < lower.size(); ++i) {
        const Interval entry = x[start + static_cast<Index>(i) * split_.inner];
        lower[i] = entry.lo, upper[i] = entry.hi;
      }
      body(start, Group{lower, upper});
    }
  }

  // body(sample, first entry, buffer) for each row of each sample.
  template <class Body>
  void over_rows(Index count, Body&& body) const {
    const Index rows = split_.rows();
    const Index grain = std::max<Index>(1, kParallelGrain / 8 / std::max<Index>(1, split_.length));
    parallel_for(rows == 0 || split_.length == 0 ? 0 : count * rows, grain,
                 [&](Index begin, Index end) {
                   std::vector<double> buffer(kBuffers * static_cast<std::size_t>(split_.length));
                   for (Index i = begin; i < end; ++i)
                     body(i / rows, split_.start(i % rows), buffer);
                 });
  }

  std::span<double> take(std::vector<double>& buffer, std::size_t k) const {
    const auto n = static_cast<std::size_t>(split_.length);
    return std::span(buffer).subspan(k * n, n);
  }
  template <class T>
  void load(const T* from, std::span<double> row) const {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = static_cast<double>(from[static_cast<Index>(i) * split_.inner]);
    }
  }
  template <class T>
  void store(Row row, T* to) const {
    for (std::size_t i = 0; i < row.size(); ++i) {
      to[static_cast<Index>(i) * split_.inner] = static_cast<T>(row[i]);
    }
  }

  void transport(const ConstView& x, const ConstView& y, const ConstView& v, const MutView& out,
                 Index count, bool forward) const {
    if (!out) return;
    if (!v) return fill_zero(out, count);
    over_rows(count, [&](Index b, Index start, std::vector<double>& buffer) {
      const auto at_x = take(buffer, 0), at_y = take(buffer, 1), given = take(buffer, 2);
      const auto result = take(buffer, 3);
      load(x.sample<double>(b) + start, at_x);
      load(y.sample<double>(b) + start, at_y);
      load(v.sample<double>(b) + start, given);
      if (forward) {
        f_.push(at_x, at_y, given, result);
      } else {
        f_.pull(at_x, at_y, given, result);
      }
      store<double>(result, out.sample<double>(b) + start);
    });
  }

  F f_;
  RowSplit split_;
};

}  // namespace lipscope

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
//   };
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>
#include <vector>

#include "ops/dispatch.h"
#include "ops/kind.h"

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

 private:
  static constexpr std::size_t kBuffers = 4;

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

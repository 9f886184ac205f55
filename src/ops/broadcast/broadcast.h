// SPDX-License-Identifier: Apache-2.0
// Arrays broadcast against each other, walked in runs: dimensions are merged as far as the arrays
// allow, and along the innermost that is left every array moves by 0 or 1 entries. A bias
// [1, C, 1, 1] over [1, C, H, W] is C runs of H * W entries with the bias fixed.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "ops/dispatch.h"
#include "ops/onnx_node.h"

namespace lipscope {

// numpy's rule; nothing when the shapes do not fit.
[[nodiscard]] std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);

// The merged dimensions, outermost first. stride[k] belongs to array k; a 0-d result has no
// dimensions.
struct MergedDims {
  std::vector<Index> extent;
  std::vector<std::vector<Index>> stride;
};
// Every shape has to be broadcastable to `full`.
[[nodiscard]] MergedDims merge_dims(const Shape& full, std::span<const Shape> shapes);

// K arrays broadcast to one shape. Immutable.
template <std::size_t K>
class Broadcast {
 public:
  using Offsets = std::array<Index, K>;

  Broadcast(Shape full, const std::array<Shape, K>& shapes)
      : full_(std::move(full)), size_(element_count(full_)), dims_(merge_dims(full_, shapes)) {
    step_.fill(1);
    if (dims_.extent.empty()) return;
    length_ = dims_.extent.back();
    dims_.extent.pop_back();
    for (std::size_t k = 0; k < K; ++k) {
      step_[k] = dims_.stride[k].back();
      dims_.stride[k].pop_back();
    }
  }

  [[nodiscard]] const Shape& shape() const noexcept { return full_; }
  [[nodiscard]] Index size() const noexcept { return size_; }
  // How far array k moves along a run: 0 or 1.
  [[nodiscard]] Index step(std::size_t k) const noexcept { return step_[k]; }

  // body(position in the full array, offsets into the arrays, entries) run by run.
  template <class Body>
  void for_each_run(Body&& body) const {
    if (size_ == 0) return;
    Cursor cursor(*this, 0);
    for (Index at = 0; at < size_; at += length_) {
      body(at, cursor.offsets, length_);
      cursor.next();
    }
  }

  // body(sample, position, offsets, entries) for all runs of all samples, on several threads; long
  // runs are cut.
  template <class Body>
  void for_each_piece(Index count, Body&& body) const {
    if (size_ == 0) return;
    if (length_ > kParallelGrain) {
      for (Index b = 0; b < count; ++b)
        for_each_run([&](Index at, const Offsets& from, Index n) {
          parallel_for(n, kParallelGrain, [&](Index begin, Index end) {
            Offsets moved = from;
            for (std::size_t k = 0; k < K; ++k) moved[k] += begin * step_[k];
            body(b, at + begin, moved, end - begin);
          });
        });
      return;
    }
    const Index runs = size_ / length_;
    parallel_for(count * runs, kParallelGrain / length_, [&](Index begin, Index end) {
      Index b = begin / runs, run = begin % runs;
      Cursor cursor(*this, run);
      for (Index r = begin; r < end; ++r) {
        body(b, run * length_, cursor.offsets, length_);
        cursor.next();
        if (++run == runs) run = 0, ++b;
      }
    });
  }

 private:
  // Where the arrays stand at the start of a run; after the last run comes the first.
  struct Cursor {
    Cursor(const Broadcast& owner, Index run) : plan(owner), at(owner.dims_.extent.size()) {
      offsets.fill(0);
      for (std::size_t d = at.size(); d-- > 0;) {
        at[d] = run % plan.dims_.extent[d];
        run /= plan.dims_.extent[d];
        for (std::size_t k = 0; k < K; ++k) offsets[k] += at[d] * plan.dims_.stride[k][d];
      }
    }
    void next() {
      for (std::size_t d = at.size(); d-- > 0;) {
        const Index extent = plan.dims_.extent[d];
        const bool wraps = ++at[d] == extent;
        for (std::size_t k = 0; k < K; ++k) {
          offsets[k] += (wraps ? 1 - extent : 1) * plan.dims_.stride[k][d];
        }
        if (!wraps) return;
        at[d] = 0;
      }
    }
    const Broadcast& plan;
    std::vector<Index> at;
    Offsets offsets;
  };

  Shape full_;
  Index size_;
  MergedDims dims_;  // without the innermost
  Index length_ = 1;
  Offsets step_;
};

// The operands of a node with two inputs, under the rule of its opset: numpy's since 7; before, the
// second may be aligned with the first at an axis, which is shown here by ones added at its end.
// Throws kBadFile when they do not fit.
[[nodiscard]] Broadcast<2> broadcast_operands(const OnnxNode& node);

}  // namespace lipscope

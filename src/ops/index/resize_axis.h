// SPDX-License-Identifier: Apache-2.0
// Resizing one axis: which input positions, with which weights, make each output position.
#pragma once

#include <string>
#include <vector>

#include "base/rational.h"
#include "ops/index/index_map.h"

namespace lipscope {

// A position on an axis; throws kUnsupported far beyond any.
[[nodiscard]] Index axis_position(const BigInteger& position);

enum class ResizeKernel { kNearest, kLinear, kCubic };

// Attribute values as ONNX spells them; nearest also "simple" (opset 10 and Upsample: floor, but
// ceil when the axis shrinks).
struct ResizeRule {
  ResizeKernel kernel = ResizeKernel::kNearest;
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;

  [[nodiscard]] bool is_known() const;
};

// Row i: the terms [begin[i], begin[i+1]); an `outside` row is the extrapolation value instead.
struct AxisRows {
  std::vector<Index> begin{0};
  std::vector<Index> sources;
  std::vector<Interval> weights;
  std::vector<bool> outside;

  [[nodiscard]] std::size_t size() const noexcept { return outside.size(); }
  // Sources of a row come in increasing order, each once.
  void add_term(Index source, const Interval& weight);
  void end_row(bool is_outside = false);

  [[nodiscard]] bool is_identity(Index length) const;
  // Every row one entry with weight 1, or outside.
  [[nodiscard]] bool is_selection() const;
  [[nodiscard]] std::vector<Index> selection() const;  // -1: outside
  [[nodiscard]] IndexMap::Weighted weighted(double extrapolation) const;
  // The rows of the pair of axes, this one outermost; `length` is the input length of `inner`.
  [[nodiscard]] AxisRows product(const AxisRows& inner, Index length) const;
  [[nodiscard]] bool fits_product(const AxisRows& inner) const;
};

// Which positions and whether they lie outside is decided in fractions, from the scale as the file
// has it; weights that are no doubles are enclosed. `begin` and `end`: the region of
// tf_crop_and_resize. Throws kUnsupported for a row whose weights add up to 0.
[[nodiscard]] AxisRows resize_axis(const ResizeRule& rule, Index in, Index out,
                                   const Rational& scale, double begin, double end);

}  // namespace lipscope

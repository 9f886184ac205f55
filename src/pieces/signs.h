// SPDX-License-Identifier: Apache-2.0
// What is decided about the units of a piecewise linear network.
#pragma once

#include <cstdint>

#include "pieces/region.h"

namespace lipscope {

// The pieces that are left of each unit, by layer.
using Spans = std::vector<std::vector<PieceSpan>>;

[[nodiscard]] Spans open_spans(const LayeredNet& net);
// The kink of a unit that a split at this value is about: that of a number that is not known
// exactly goes by the middle of its interval. Nothing for other values.
[[nodiscard]] std::optional<std::size_t> kink_at(const UnitForm& form, double at);
// Cuts a span by a side at a kink; false when nothing is left. Sides elsewhere say nothing.
[[nodiscard]] bool cut(PieceSpan& span, const UnitForm& form, const Side& side);
// Nothing for a path that has both sides of a kink.
[[nodiscard]] std::optional<Spans> spans_of(const LayeredNet& net, const Path& path);
// Of the values at a point, up to rounding: single pieces.
[[nodiscard]] Spans spans_at(const LayeredNet& net, const std::vector<double>& point);
[[nodiscard]] bool agrees(const Spans& spans, const Spans& with);
[[nodiscard]] Slopes slopes_of(const LayeredNet& net, const Spans& spans);
// The slopes of the pieces.
[[nodiscard]] Interval slopes_of(const UnitForm& form, const PieceSpan& span);
// Whether a split would change a slope.
[[nodiscard]] inline bool is_unstable(const LayeredNet& net, const Spans& spans, UnitId unit) {
  const DenseLayer& layer = net.layers[unit.layer];
  return !spans[unit.layer][unit.place].single() &&
         layer.below[unit.place] != layer.above[unit.place];
}

// Open in the sense that its piece is not known.
[[nodiscard]] inline bool undecided(const DenseLayer& layer, std::size_t i, const PieceSpan& span) {
  return layer.form(i).curved() || (!span.single() && layer.below[i] != layer.above[i]);
}
// The sides that a unit is known to be on: above the kink before its first piece, below the one
// behind its last.
[[nodiscard]] inline bool has_side(const UnitForm& form, const PieceSpan& span, bool above) {
  return above ? span.first > 0 : span.last + 1 < form.pieces();
}
[[nodiscard]] inline Interval kink_of(const UnitForm& form, const PieceSpan& span, bool above) {
  return above ? form.kink(span.first - 1) : form.kink(span.last);
}

// By layer: -1 where the value before the unit is negative at a point, else 1; up to rounding.
using Signs = std::vector<std::vector<std::int8_t>>;
[[nodiscard]] Signs signs_at(const LayeredNet& net, const std::vector<double>& point);

// The piece at a value, the first one at NaN, and what the unit makes of it; up to rounding. NaN
// for a function with curves.
[[nodiscard]] std::size_t piece_at(const UnitForm& form, double z);
[[nodiscard]] double plain_value(const UnitForm& form, double z);

// How far from x in direction d (or -d) the nearest kink is, up to rounding.
[[nodiscard]] double way_to_kink(const LayeredNet& net, const std::vector<double>& x,
                                 const std::vector<double>& d);

}  // namespace lipscope

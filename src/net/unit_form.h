// SPDX-License-Identifier: Apache-2.0
// What a unit makes of its value: its slopes between kinks, and lines around its graph.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "base/interval.h"
#include "ops/elementwise/elementwise.h"

namespace lipscope {

struct UnitNode;

// Pieces of a unit that are left, counted from below.
struct PieceSpan {
  std::size_t first = 0, last = 0;
  [[nodiscard]] bool single() const { return first == last; }
  bool operator==(const PieceSpan&) const = default;
};

struct UnitForm {
  double below = 1, above = 1;       // slopes on both sides of zero; both NaN for another form
  Interval slopes = {1, 1};          // everywhere
  const Elementwise* phi = nullptr;  // null where the slopes say all
  std::shared_ptr<const LinearPieces> linear = nullptr;  // of another form; kinks apart

  // Whether more than one slope occurs on a range of values before it.
  [[nodiscard]] bool is_unstable(const Interval& range) const;
  [[nodiscard]] bool curved() const { return std::isnan(below) && !linear; }
  // A function with curves counts as one piece.
  [[nodiscard]] std::size_t pieces() const;
  // Not for functions with curves. kink(i) is between the pieces i and i + 1.
  [[nodiscard]] Interval kink(std::size_t i) const;
  [[nodiscard]] LinearPiece piece(std::size_t i) const;
  // Those with inner points in the range, at least one.
  [[nodiscard]] PieceSpan on(const Interval& range) const;
};

// Of the entries of a node of the network that is not its input or output.
class NodeForms {
 public:
  NodeForms() = default;
  explicit NodeForms(const UnitNode& node);
  [[nodiscard]] UnitForm operator[](std::size_t i) const;

 private:
  UnitForm common_;
  std::vector<double> below_;  // where entries differ, which are of slope 1 above zero
};

// What the function makes of a range; not for functions with curves.
[[nodiscard]] Interval values_of(const UnitForm& form, const Interval& range);

struct UnitLine {
  double slope = 0, offset = 0;
};
struct UnitLines {
  UnitLine up, down;  // above and below the function on the range
  double size = 0;    // at least its absolute values there
};
[[nodiscard]] UnitLines lines_of(const UnitForm& form, const Interval& range);

}  // namespace lipscope

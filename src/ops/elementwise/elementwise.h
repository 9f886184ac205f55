// SPDX-License-Identifier: Apache-2.0
// What is known of the slopes of a function applied to each entry.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/interval.h"
#include "lipscope/op.h"

namespace lipscope {

struct LinearPiece {
  double slope = 1;
  Interval offset = {0, 0};
};
// A continuous function that is linear between its kinks [pieces-10].
struct LinearPieces {
  std::vector<Interval> kinks;      // rising; each holds one
  std::vector<LinearPiece> pieces;  // one more
};

class Elementwise : public Op {
 public:
  const Elementwise* elementwise() const final { return this; }
  // Holds every difference quotient (f(a) - f(b)) / (a - b), a != b in x, and both one-sided
  // derivatives at every point of x where f has a kink [activations-1]. NaN where f has no value
  // on x. Nothing for functions that do not tell.
  [[nodiscard]] virtual std::optional<Interval> slopes(const Interval& x) const = 0;

  // The pieces of a function that is not linear on both sides of zero, where it is known to consist
  // of linear ones. Nothing for others.
  [[nodiscard]] virtual std::optional<LinearPieces> linear_pieces() const { return std::nullopt; }

  // From values and slopes on pieces of each interval, nearly the lines with the smallest mean
  // distance. Nothing where an entry has no finite bound on one side.
  [[nodiscard]] std::optional<Relaxation> relax(std::span<const Box> in) const override;
  // Lines of another slope, that of the other end of each interval: of a kink, its other side.
  // Nothing where relax() gives nothing.
  [[nodiscard]] std::optional<Relaxation> other_lines(const Box& in) const;
};

// The slopes of a function that is linear below and above 0 and continuous; nothing for any other.
struct SlopesBesideZero {
  double below, above;
};
[[nodiscard]] std::optional<SlopesBesideZero> slopes_beside_zero(const Elementwise& phi);

// The slopes of a function on the whole line.
struct SlopeRow {
  std::string name;        // of the operator
  std::string attributes;  // "alpha=0.2"; empty: none given
  Interval slopes;         // rounded outward
  double lipschitz;        // largest absolute slope; infinity where there is none
  double where;            // where it is taken or approached, nearest to 0; about 7 digits
};

// One row per elementwise operator and set of attributes among its worked examples.
[[nodiscard]] std::vector<SlopeRow> slope_table();

}  // namespace lipscope

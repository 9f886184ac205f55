// SPDX-License-Identifier: Apache-2.0
// Lower bounds of linear functions of the values behind a layer, on a bounded domain and on parts
// of it where units have a sign: by linear bounds propagated back to the input, for given lines and
// multipliers [local-17], [robustness-3].
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pieces/preactivation_bounds.h"

namespace lipscope {

// Layers of units from which on the lines of curves are worth a choice.
inline constexpr std::size_t kDeepCurves = 3;

class SlopeBounds {
 public:
  // Functions to bound from below: of the values behind the units before `layer`.
  struct Targets {
    std::size_t layer = 0;
    std::vector<double> rows, constants;
  };
  // The domain where some units have a sign. Vectors have an entry per unstable unit.
  struct Part {
    Index target = 0;
    std::vector<std::int8_t>
        signs;                 // 0: both; none for units that are not linear on both sides of 0
    std::vector<float> mixes;  // 0 to 1: from one free line to the other
    std::vector<float> multipliers;  // of the signs; >= 0
    double bound = -kInf;            // the function is at least this, proved
    std::size_t split = 0;           // for the owner's use
  };
  // What one evaluation of many parts leaves behind. Matrices have a row per part.
  struct Pass {
    Index count = 0;
    std::vector<std::vector<double>> behind, before;  // coefficients around the units of each layer
    std::vector<std::vector<double>> slope, offset;   // of the lines used
    std::vector<double> input;                        // coefficients of the input
  };

  // Borrows all.
  SlopeBounds(const LayeredNet& net, const DomainSupport& domain,
              const PreactivationBounds& bounds);
  // Units of layers before `end` whose lines can be chosen; again after the bounds have changed.
  void number_unstable_units(std::size_t end);
  [[nodiscard]] const std::vector<UnitId>& open() const { return open_; }
  // Whether a sign makes the unstable unit linear.
  [[nodiscard]] bool has_sides(std::size_t open) const;

  // The whole domain, with the lines of the bounds.
  [[nodiscard]] Part whole(Index target) const;
  // Values before units, and less these: two targets for each place.
  [[nodiscard]] Targets unit_targets(std::size_t layer,
                                     const std::vector<std::size_t>& places) const;
  // Proves the bounds of parts for their lines and multipliers.
  void evaluate(const Targets& targets, std::span<Part> parts, Pass& pass) const;

 protected:
  // Two lines on one side of a unit.
  struct Pair {
    UnitLine from, to;
    double error = 0;  // of any mean of both on the range
  };
  struct Choice {
    Pair up, down;  // equal lines: no choice
  };

  const LayeredNet& net_;
  const DomainSupport& domain_;
  const PreactivationBounds& bounds_;
  std::vector<UnitId> open_;
  std::vector<Choice> choices_;  // of the unstable units

 private:
  [[nodiscard]] Choice choice_of(UnitId unit) const;
  [[nodiscard]] static UnitLine mean(const Pair& pair, double mix, double sign);

  std::vector<std::vector<Index>>
      number_;  // among the unstable units, by layer and place; -1: none
};

}  // namespace lipscope

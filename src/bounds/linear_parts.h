// SPDX-License-Identifier: Apache-2.0
// Linear bounds on parts of a domain: where entries of values before functions of single entries
// lie on one side of a number [local-16].
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bounds/linear_bounds.h"

namespace lipscope {

class LinearAscent;
struct RowCuts;

// A function on a part of the domain, and the choice of lines and multipliers that bounds it.
struct LinearPart {
  // An entry of a value, and the number that cuts its range in two.
  struct Place {
    ValueId value;
    std::size_t entry = 0;
    double at = 0;
  };
  struct NodeLines;
  struct Cut {
    ValueId value;
    std::size_t entry = 0;
    Interval range;  // where the entry is, both ends included
    double multiplier = 0;
    std::shared_ptr<const std::vector<NodeLines>> lines = {};
  };

  std::size_t row = 0;  // the function
  std::vector<Cut> cuts = {};
  std::vector<float> mix = {};      // shares of other lines
  double bound = -kInf;             // proved; infinity: there is no such point
  std::optional<Place> split = {};  // where lines cost most; nothing: nowhere
};

class LinearParts {
 public:
  // Functions of a value: `rows` times it. Borrows the bounds.
  LinearParts(LinearBounds& bounds, ValueId value, std::span<const double> rows);

  // Function `row` on the whole domain.
  [[nodiscard]] LinearPart whole(std::size_t row) const;
  // The points of a part where the entry is at least, or at most, the number.
  [[nodiscard]] LinearPart side(const LinearPart& part, const LinearPart::Place& place,
                                bool at_least);
  // Raises the bounds of parts, in at most `steps` steps, less where all are above `enough` (by
  // row), and finds where to split those that are not.
  void raise(std::span<LinearPart> parts, std::span<const double> enough, int steps);

 private:
  struct Choice {
    std::size_t node = 0, entry = 0;
  };
  void find_splits(std::span<LinearPart> parts, const std::vector<std::size_t>& places,
                   const LinearAscent& ascent, const RowCuts& cuts);
  [[nodiscard]] std::vector<LinearPart::NodeLines> lines_on(ValueId value, std::size_t entry,
                                                            const Interval& range);

  LinearBounds& bounds_;
  ValueId value_;
  std::size_t size_;
  std::vector<double> rows_;
  std::vector<Choice> choices_;  // in which lines differ
};

}  // namespace lipscope

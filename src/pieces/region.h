// SPDX-License-Identifier: Apache-2.0
// Where a search takes place: what splits leave of the domain, and which slopes occur there.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "pieces/layered_net.h"

namespace lipscope {

// One side of a split: the value before the unit is at most, or at least, `at`.
struct Side {
  UnitId unit;
  double at = 0;
  bool above = false;
};
using Path = std::vector<Side>;

class Region {
 public:
  virtual ~Region() = default;
  // The same domain, for another thread.
  [[nodiscard]] virtual std::unique_ptr<Region> clone() const = 0;

  struct View {
    bool empty = false;         // proved to have no inner point
    CaseTree::Empty proof;      // where that takes one
    Slopes slopes;              // all that occur
    std::vector<double> point;  // an inner point as far as is known; may be empty
  };
  // `known`: an inner point; may be empty.
  [[nodiscard]] virtual View look(const Path& path, const std::vector<double>& known) = 0;
  // What look() proves, from the path and the proof of emptiness alone.
  [[nodiscard]] virtual View confirm(const Path& path, const CaseTree::Empty& proof) = 0;
  // Where splitting the unit would help, after a call of look() for the path; nothing if nowhere.
  [[nodiscard]] virtual std::optional<double> split_at(UnitId unit) const = 0;
  // Whether units behind others without a side should wait.
  [[nodiscard]] virtual bool by_layers() const = 0;

  // Of the piece around a point, up to rounding.
  [[nodiscard]] virtual Slopes slopes_at(const std::vector<double>& point) const = 0;
};

}  // namespace lipscope

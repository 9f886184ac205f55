// SPDX-License-Identifier: Apache-2.0
// Where a search takes place: a region in which points, proofs of emptiness and places to split are
// looked for. What it finds is proved by Region::confirm.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "pieces/region.h"

namespace lipscope {

class SearchRegion {
 public:
  virtual ~SearchRegion() = default;
  // The same domain, for another thread.
  [[nodiscard]] virtual std::unique_ptr<SearchRegion> clone() const = 0;

  struct Finding : Region::View {
    CaseTree::InfeasibilityProof proof;  // of emptiness, where that takes one
    std::vector<double> point;           // an inner point as far as is known; may be empty
  };
  // `known`: an inner point; may be empty.
  [[nodiscard]] virtual Finding examine(const Path& path, const std::vector<double>& known) = 0;
  // Where splitting the unit would help, after a call of examine() for the path; nothing if
  // nowhere.
  [[nodiscard]] virtual std::optional<double> split_at(UnitId unit) const = 0;
  // Whether units behind others without a side should wait.
  [[nodiscard]] virtual bool by_layers() const = 0;

  // Of the piece around a point, up to rounding.
  [[nodiscard]] virtual Slopes slopes_at(const std::vector<double>& point) const = 0;
};

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Points, proofs of emptiness and places to split on a bounded domain, and ranges made smaller.
#pragma once

#include <functional>

#include "pieces/bounded_region.h"
#include "search/search_region.h"

namespace lipscope {

class BoundedSearch : public BoundedRegion, public SearchRegion {
 public:
  using BoundedRegion::BoundedRegion;

  [[nodiscard]] std::unique_ptr<SearchRegion> clone() const override {
    return std::make_unique<BoundedSearch>(*this);
  }
  [[nodiscard]] Finding examine(const Path& path, const std::vector<double>& known) override;
  [[nodiscard]] std::optional<double> split_at(UnitId unit) const override;
  [[nodiscard]] bool by_layers() const override { return false; }
  [[nodiscard]] Slopes slopes_at(const std::vector<double>& point) const override;

  using BoundedRegion::sharpen;
  // Narrows the ranges of unstable units, each end by lines of its own, in so many steps; what a
  // certificate needs for it [local-17].
  SharpEnds sharpen(int steps, const std::function<bool()>& stop);
  // Multiplications of a step.
  [[nodiscard]] double sharpening_cost() const;

 private:
  void find_point_or_proof(const Path& path, const std::vector<double>& known, bool leaf,
                           Finding& view) const;
  [[nodiscard]] bool inside(const Planes& planes, const std::vector<double>& x) const;
};

}  // namespace lipscope

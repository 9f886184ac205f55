// SPDX-License-Identifier: Apache-2.0
// A box, a ball or both, and what splits leave of it [pieces-6].
#pragma once

#include "pieces/euclidean_bound.h"
#include "pieces/forward_bounds.h"
#include "pieces/region.h"
#include "pieces/sharper_ranges.h"

namespace lipscope {

class BoundedRegion : public Region {
 public:
  // Borrows the network.
  BoundedRegion(const LayeredNet& net, const Domain& domain);
  BoundedRegion(const BoundedRegion& other);
  BoundedRegion& operator=(const BoundedRegion&) = delete;
  // The domain is bounded and so are the values on it.
  [[nodiscard]] bool usable() const { return usable_; }

  [[nodiscard]] std::unique_ptr<Region> clone() const override {
    return std::make_unique<BoundedRegion>(*this);
  }
  [[nodiscard]] View look(const Path& path, const std::vector<double>& known) override;
  [[nodiscard]] View confirm(const Path& path, const CaseTree::Empty& proof) override;
  [[nodiscard]] std::optional<double> split_at(UnitId unit) const override;
  [[nodiscard]] bool by_layers() const override { return false; }
  [[nodiscard]] Slopes slopes_at(const std::vector<double>& point) const override;
  [[nodiscard]] const DomainSupport& domain() const { return domain_; }
  // After look(): units without a single slope, and values before all units.
  [[nodiscard]] std::size_t open_units() const;
  [[nodiscard]] const std::vector<std::vector<Interval>>& ranges() const {
    return forward_.ranges();
  }

  // Narrows the ranges of open units, each end by lines of its own, in so many steps; what a
  // certificate needs for it [local-17].
  SharpEnds sharpen(int steps, const std::function<bool()>& stop);
  // The same from the certificate; false for one of another network.
  bool sharpen(const SharpEnds& ends);
  // Multiplications of a step.
  [[nodiscard]] double sharpening_cost() const;
  // Narrows the ranges of all units to what the semidefinite recursion with these multipliers says
  // about their distance from their values at a point [local-11]. False for multipliers of another
  // network and where it has nothing to say.
  bool narrow(const Multipliers& multipliers);

 private:
  // Pieces that the sides of the path leave of a unit with kinks elsewhere than at zero.
  struct Cut {
    UnitId unit;
    PieceSpan span;
  };
  // Makes sides at kinks hold for all that is known of these; false when nothing is left.
  bool restrict_to(Path& path);
  [[nodiscard]] PieceSpan span_of(UnitId unit) const;
  [[nodiscard]] Slopes slopes() const;
  void find_point_or_proof(const Path& path, const std::vector<double>& known, bool leaf,
                           View& view) const;
  [[nodiscard]] bool inside(const Planes& planes, const std::vector<double>& x) const;
  // Whether the weighted sum of the planes is negative on the domain.
  [[nodiscard]] bool refutes(const Planes& planes, const std::vector<double>& weights) const;

  const LayeredNet& net_;
  DomainSupport domain_;
  ForwardBounds forward_;
  bool usable_ = false;
  std::vector<Cut> cuts_;
};

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// A box, a ball or both, and what splits leave of it [pieces-6].
#pragma once

#include "pieces/euclidean_bound.h"
#include "pieces/preactivation_bounds.h"
#include "pieces/recorded_ranges.h"
#include "pieces/region.h"

namespace lipscope {

class BoundedRegion : public Region {
 public:
  // Borrows the network.
  BoundedRegion(const LayeredNet& net, const Domain& domain);
  BoundedRegion(const BoundedRegion& other);
  BoundedRegion& operator=(const BoundedRegion&) = delete;
  // The domain is bounded and so are the values on it.
  [[nodiscard]] bool usable() const { return usable_; }

  [[nodiscard]] View confirm(const Path& path, const CaseTree::InfeasibilityProof& proof) override;
  [[nodiscard]] const DomainSupport& domain() const { return domain_; }
  // After confirm(): units without a single slope, and values before all units.
  [[nodiscard]] std::size_t unstable_units() const;
  [[nodiscard]] const std::vector<std::vector<Interval>>& ranges() const {
    return forward_.ranges();
  }

  // Narrows the ranges of units, each end by lines of its own, as listed [local-17]; false for
  // lines of another network.
  bool sharpen(const SharpEnds& ends);
  // Narrows the ranges of all units to what the semidefinite recursion with these multipliers says
  // about their distance from their values at a point [local-11]. False for multipliers of another
  // network and where it has nothing to say.
  bool narrow(const Multipliers& multipliers);

 protected:
  // Makes sides at kinks hold for all that is known of these; false when nothing is left.
  bool restrict_to(Path& path);
  [[nodiscard]] PieceSpan span_of(UnitId unit) const;
  [[nodiscard]] Slopes slopes() const;
  // Whether the weighted sum of the planes is negative on the domain.
  [[nodiscard]] bool refutes(const Planes& planes, const std::vector<double>& weights) const;
  [[nodiscard]] const LayeredNet& net() const { return net_; }
  [[nodiscard]] PreactivationBounds& forward() { return forward_; }
  [[nodiscard]] const PreactivationBounds& forward() const { return forward_; }

 private:
  // Pieces that the sides of the path leave of a unit with kinks elsewhere than at zero.
  struct Cut {
    UnitId unit;
    PieceSpan span;
  };

  const LayeredNet& net_;
  DomainSupport domain_;
  PreactivationBounds forward_;
  bool usable_ = false;
  std::vector<Cut> cuts_;
};

}  // namespace lipscope

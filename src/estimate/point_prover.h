// SPDX-License-Identifier: Apache-2.0
// The best proved quotient near a point inside a piece.
#pragma once

#include <random>

#include "estimate/method.h"
#include "estimate/quotient.h"
#include "search/jacobian_bounder.h"
#include "search/search_region.h"

namespace lipscope {

class PointProver {
 public:
  // Borrows all; `name` is that of the method.
  PointProver(const MethodRun& run, const LayeredNet& net, const NormDecomposition& parts,
              const SearchRegion& region, std::string_view name)
      : run_(run),
        net_(net),
        parts_(parts),
        part_net_(net, parts),
        region_(region),
        name_(name),
        projection_(*run.query.graph, run.query.domain) {}

  // Reports a quotient that is above the best lower bound so far, and gives that bound.
  double try_point(std::vector<double> x);

 private:
  // The direction in which the Jacobian at x stretches most.
  std::vector<double> steepest(const std::vector<double>& x);
  // Into the inside of a box or ball, on the same piece.
  void leave_the_edge(std::vector<double>& x) const;

  const MethodRun& run_;
  const LayeredNet& net_;
  const NormDecomposition& parts_;
  ComponentNet part_net_;
  const SearchRegion& region_;
  std::string_view name_;
  DomainProjection projection_;
  std::mt19937_64 rng_{5};
  std::normal_distribution<double> normal_;
};

}  // namespace lipscope

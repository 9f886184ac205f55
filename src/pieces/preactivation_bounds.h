// SPDX-License-Identifier: Apache-2.0
// Ranges of the values before the units on a bounded domain, by linear bounds that are propagated
// back to the input [pieces-6].
#pragma once

#include <vector>

#include "bounds/domain_support.h"
#include "net/unit_form.h"
#include "pieces/region.h"
#include "pieces/side_planes.h"

namespace lipscope {

class PreactivationBounds {
 public:
  // Borrows both.
  PreactivationBounds(const LayeredNet& net, const DomainSupport& domain);
  // What the other one knows, for an equal domain.
  PreactivationBounds(const PreactivationBounds& other, const DomainSupport& domain);

  // Ranges that hold on the whole domain, known from elsewhere: those found here shrink to them,
  // and what follows from them, too.
  void narrow(const std::vector<std::vector<Interval>>& known);
  // What the sides of the path leave; false when nothing. Not for two threads at once.
  bool restrict_to(const Path& path);
  // Takes over ranges of a layer that hold on the domain, and finds those of later layers anew.
  void tighten(std::size_t layer, const std::vector<Interval>& ranges);
  // Of each unit, by layer.
  [[nodiscard]] const std::vector<std::vector<Interval>>& ranges() const { return ranges_; }
  // All ranges are finite and hold a number.
  [[nodiscard]] bool bounded() const;

  // Linear functions that are at least 0 where the sides of the path hold: one row each.
  [[nodiscard]] Planes planes_of(const Path& path) const;

  // By layer, on the ranges.
  [[nodiscard]] const std::vector<std::vector<UnitLines>>& units() const { return units_; }
  // Upper bounds, by layer and unit: of sums |W| |x| + |b|, and of sums of the weights' radii times
  // |x|.
  [[nodiscard]] const std::vector<std::vector<double>>& abs_sum_bound() const {
    return abs_sum_bound_;
  }
  [[nodiscard]] const std::vector<std::vector<double>>& weight_uncertainty() const {
    return weight_uncertainty_;
  }
  // Of the sizes of all values before the units of a layer and of all that they are made of.
  [[nodiscard]] double factors(std::size_t layer) const { return factors_[layer]; }
  // Upper bounds of absolute values behind the units of a layer.
  [[nodiscard]] std::vector<double> sizes_behind(std::size_t layer) const;

 private:
  struct Row {
    std::size_t place;
    double sign;
  };
  // sign * (value before the unit) <= weights x + offset.
  [[nodiscard]] Planes planes(std::size_t layer, const std::vector<Row>& rows) const;
  void shrink_by_planes(std::size_t layer, const std::vector<Row>& rows, const Planes& sides,
                        std::vector<Interval>& ranges) const;
  // Of the sides in a layer.
  [[nodiscard]] Planes planes_of(std::size_t layer, const Path& path) const;
  void set_root(std::size_t layer);
  void set_units(std::size_t layer);
  void set_reach(std::size_t layer);

  const LayeredNet& net_;
  const DomainSupport& domain_;
  std::vector<std::vector<Interval>> root_, ranges_;
  std::vector<std::vector<UnitLines>> units_;
  std::vector<std::vector<double>> abs_sum_bound_;       // bounds of sums |W| |x| + |b|
  std::vector<std::vector<double>> weight_uncertainty_;  // and of sums over the weights' radii
  std::vector<double> factors_;                          // by layer
};

}  // namespace lipscope

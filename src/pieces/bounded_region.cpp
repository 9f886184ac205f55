// SPDX-License-Identifier: Apache-2.0
#include "pieces/bounded_region.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "net/small.h"
#include "ops/elementwise/elementwise.h"
#include "pieces/joint_units.h"
#include "pieces/signs.h"

namespace lipscope {
namespace {

// Of what a unit makes of its value.
Interval behind_unit(const DenseLayer& layer, std::size_t i, const Interval& z) {
  const UnitForm form = layer.form(i);
  if (!form.curved()) return values_of(form, z);
  const Box box{Tensor::vector(std::vector<double>{z.lo}),
                Tensor::vector(std::vector<double>{z.hi})};
  const auto range = form.phi->range(std::span(&box, 1));
  return range ? Interval{(*range)[0].lower.doubles()[0], (*range)[0].upper.doubles()[0]} : kEntire;
}

// Values before the units at a point, all rounding included.
std::vector<std::vector<Interval>> values_at(const LayeredNet& net, const std::vector<double>& x) {
  std::vector<std::vector<Interval>> values;
  std::vector<double> middle = x, radius(x.size(), 0);
  for (std::size_t k = 0; k < net.hidden(); ++k) {
    const DenseLayer& layer = net.layers[k];
    const double g = 2 * gamma_up(static_cast<std::size_t>(layer.in) + 8);
    std::vector<Interval> z, behind;
    for (Index i = 0; i < layer.out; ++i) {
      const double* w = layer.row(i);
      const double* rough = layer.radius_row(i);
      double sum = 0, size = 0, spread = 0;
      for (std::size_t j = 0; j < middle.size(); ++j) {
        const double term = w[j] * middle[j];
        sum += term;
        size += std::fabs(term);
        spread += std::fabs(w[j]) * radius[j];
        if (rough != nullptr) spread += rough[j] * (std::fabs(middle[j]) + radius[j]);
      }
      const double total = add_up(size, spread);
      const double way = add_up(spread, add_up(mul_up(g, total), underflow_up(total)));
      const auto place = static_cast<std::size_t>(i);
      z.push_back(Interval{sub_down(sum, way), add_up(sum, way)} + layer.bias[place]);
      if (is_nan(z.back())) z.back() = kEntire;
      behind.push_back(behind_unit(layer, place, z.back()));
    }
    values.push_back(std::move(z));
    middle.clear();
    radius.clear();
    for (const Interval& e : behind) {
      const bool usable = !is_nan(e) && is_bounded(e);
      middle.push_back(usable ? midpoint(e) : 0);
      radius.push_back(usable ? radius_up(e) : kInf);
    }
  }
  return values;
}

}  // namespace

BoundedRegion::BoundedRegion(const LayeredNet& net, const Domain& domain)
    : net_(net),
      domain_(domain, static_cast<std::size_t>(net.inputs())),
      forward_(net, domain_),
      usable_(domain_.bounded() && forward_.bounded()) {}

BoundedRegion::BoundedRegion(const BoundedRegion& other)
    : net_(other.net_),
      domain_(other.domain_),
      forward_(other.forward_, domain_),
      usable_(other.usable_),
      cuts_(other.cuts_) {}

bool BoundedRegion::restrict_to(Path& path) {
  cuts_.clear();
  for (Side& side : path) {
    const UnitForm form = net_.layers[side.unit.layer].form(side.unit.place);
    const auto kink = form.linear ? kink_at(form, side.at) : std::nullopt;
    if (!kink) continue;
    auto known = std::ranges::find(cuts_, side.unit, &Cut::unit);
    if (known == cuts_.end()) known = cuts_.insert(known, {side.unit, {0, form.pieces() - 1}});
    if (!cut(known->span, form, side)) return false;
    side.at = side.above ? form.kink(*kink).lo : form.kink(*kink).hi;
  }
  return forward_.restrict_to(path);
}

PieceSpan BoundedRegion::span_of(UnitId unit) const {
  PieceSpan span =
      net_.layers[unit.layer].form(unit.place).on(forward_.ranges()[unit.layer][unit.place]);
  const auto known = std::ranges::find(cuts_, unit, &Cut::unit);
  if (known == cuts_.end()) return span;
  // Where both leave nothing the part has no inner points, and any piece will do.
  span.first = std::max(span.first, known->span.first);
  span.last = std::max(span.first, std::min(span.last, known->span.last));
  return span;
}

Slopes BoundedRegion::slopes() const {
  Slopes slopes(net_.hidden());
  for (std::size_t k = 0; k < slopes.size(); ++k) {
    const DenseLayer& layer = net_.layers[k];
    for (std::size_t i = 0; i < layer.slopes.size(); ++i) {
      const Interval range = forward_.ranges()[k][i];
      if (!std::isnan(layer.below[i])) {
        slopes[k].push_back(range.lo >= 0   ? point(layer.above[i])
                            : range.hi <= 0 ? point(layer.below[i])
                                            : layer.slopes[i]);
      } else if (const UnitForm form = layer.form(i); form.linear) {
        slopes[k].push_back(slopes_of(form, span_of({k, i})));
      } else {
        const auto found = layer.phi[i]->slopes(range);
        slopes[k].push_back(found && is_bounded(*found) ? *found : layer.slopes[i]);
      }
    }
    narrow_jointly(layer, forward_.ranges()[k], slopes[k]);
  }
  return slopes;
}

bool BoundedRegion::refutes(const Planes& planes, const std::vector<double>& weights) const {
  const std::vector<double> nothing(domain_.inputs());
  return max_up(domain_, nothing, 0, planes, weights) < 0;
}

Region::View BoundedRegion::confirm(const Path& sides, const CaseTree::InfeasibilityProof& proof) {
  View view;
  Path path = sides;
  view.empty = !restrict_to(path);
  if (view.empty) return view;
  if (!proof.weights.empty() && proof.weights.size() == path.size())
    view.empty = refutes(forward_.planes_of(path), proof.weights);
  view.slopes = slopes();
  return view;
}

bool BoundedRegion::sharpen(const SharpEnds& ends) {
  return apply_sharp_ends(net_, domain_, ends, forward_);
}

bool BoundedRegion::narrow(const Multipliers& multipliers) {
  const auto& around = domain_.around();
  if (!around || !std::isfinite(around->radius) || multipliers.size() != net_.hidden())
    return false;
  for (std::size_t k = 0; k < net_.hidden(); ++k) {
    if (std::ssize(multipliers[k]) != net_.layers[k].out) return false;
  }
  Path none;
  (void)restrict_to(none);
  const auto constants = EuclideanBound(net_, std::nullopt).before_units(slopes(), multipliers);
  auto ranges = values_at(net_, around->center);
  for (std::size_t k = 0; k < ranges.size(); ++k) {
    for (std::size_t i = 0; i < ranges[k].size(); ++i) {
      const double way = mul_up(around->radius, constants[k][i]);
      ranges[k][i] = ranges[k][i] + Interval{-way, way};
    }
  }
  forward_.narrow(ranges);
  return true;
}

std::size_t BoundedRegion::unstable_units() const {
  std::size_t count = 0;
  for (const auto& layer : slopes())
    count += static_cast<std::size_t>(
        std::ranges::count_if(layer, [](const Interval& s) { return s.lo != s.hi; }));
  return count;
}

}  // namespace lipscope

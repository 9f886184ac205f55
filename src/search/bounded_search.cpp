// SPDX-License-Identifier: Apache-2.0
#include "search/bounded_search.h"

#include <algorithm>
#include <cmath>

#include "ops/elementwise/elementwise.h"
#include "pieces/joint_units.h"
#include "pieces/signs.h"
#include "search/sharper_ranges.h"
#include "search/widest_point.h"

namespace lipscope {
namespace {

// Where both sides have much smaller ranges of slopes, or one that is most of the range has: at the
// top of a slope that rises and falls neither would.
double best_split_of_curve(const Elementwise& phi, const Interval& range) {
  constexpr int kCandidates = 16;
  constexpr double kOneSide = 0.05, kLeast = 1e-3;
  const double width = range.hi - range.lo;
  const auto spread = [&](const Interval& part) {
    const auto found = phi.slopes(part);
    return found && is_bounded(*found) ? found->hi - found->lo : kInf;
  };
  const double all = spread(range);
  double best = midpoint(range), most = -kInf;
  for (int c = 1; c < kCandidates; ++c) {
    const double share = static_cast<double>(c) / kCandidates, at = range.lo + share * width;
    const double below = 1 - spread({range.lo, at}) / all, above = 1 - spread({at, range.hi}) / all;
    const double score = std::max(below, kLeast) * std::max(above, kLeast) +
                         kOneSide * (share * below + (1 - share) * above);
    if (!(score > most)) continue;
    most = score;
    best = at;
  }
  return best;
}

}  // namespace

bool BoundedSearch::inside(const Planes& planes, const std::vector<double>& x) const {
  const std::size_t n = domain().inputs();
  for (std::size_t s = 0; s < planes.offsets.size(); ++s) {
    double value = planes.offsets[s];
    for (std::size_t j = 0; j < n; ++j) value += planes.weights[s * n + j] * x[j];
    if (!(value > 0)) return false;
  }
  return true;
}

void BoundedSearch::find_point_or_proof(const Path& path, const std::vector<double>& known,
                                        bool leaf, Finding& view) const {
  const Planes planes = forward().planes_of(path);
  if (!known.empty() && !leaf && inside(planes, known)) {
    view.point = known;
    return;
  }
  WidestPoint widest =
      widest_point({planes.weights, planes.offsets}, domain().low(), domain().high(),
                   known.empty() ? domain().middle() : known, leaf);
  if (widest.slack < 0 && refutes(planes, widest.weights)) {
    view.empty = true;
    view.proof.weights = std::move(widest.weights);
    for (const Side& side : path) view.proof.units.push_back(side.unit);
    return;
  }
  domain().project(widest.x);
  view.point = std::move(widest.x);
}

SearchRegion::Finding BoundedSearch::examine(const Path& sides, const std::vector<double>& known) {
  Finding view;
  Path path = sides;
  if (!restrict_to(path)) {
    view.empty = true;
    return view;
  }
  view.slopes = slopes();
  const bool leaf = std::ranges::all_of(view.slopes, [](const auto& layer) {
    return std::ranges::all_of(layer, [](const Interval& s) { return s.lo == s.hi; });
  });
  if (path.empty()) {
    view.point = domain().middle();
    domain().project(view.point);
  } else {
    find_point_or_proof(path, known, leaf, view);
  }
  return view;
}

std::optional<double> BoundedSearch::split_at(UnitId unit) const {
  const DenseLayer& layer = net().layers[unit.layer];
  const Interval range = forward().ranges()[unit.layer][unit.place];
  if (!std::isnan(layer.below[unit.place]))
    return range.lo < 0 && range.hi > 0 ? std::optional(0.0) : std::nullopt;
  if (const UnitForm form = layer.form(unit.place); form.linear) {
    const auto [first, last] = span_of(unit);
    std::optional<double> best;  // the kink next to the middle
    const auto way = [&](double at) { return std::fabs(at - midpoint(range)); };
    for (std::size_t i = first; i < last; ++i) {
      const double at = midpoint(form.kink(i));
      if (!best || way(at) < way(*best)) best = at;
    }
    return best;
  }
  const double width = range.hi - range.lo;
  if (!(width > 1e-6)) return std::nullopt;
  return best_split_of_curve(*layer.phi[unit.place], range);
}

SharpEnds BoundedSearch::sharpen(int steps, const std::function<bool()>& stop) {
  SharpEnds ends;
  sharpen_ranges(net(), domain(), steps, stop, forward(), &ends);
  return ends;
}

double BoundedSearch::sharpening_cost() const {
  return lipscope::sharpening_cost(net(), forward());
}

Slopes BoundedSearch::slopes_at(const std::vector<double>& x) const {
  Slopes slopes(net().hidden());
  std::vector<double> value = x;
  for (std::size_t k = 0; k < slopes.size(); ++k) {
    const DenseLayer& layer = net().layers[k];
    std::vector<double> next(static_cast<std::size_t>(layer.out));
    std::vector<Interval> values;
    for (std::size_t i = 0; i < next.size(); ++i) {
      const double* w = layer.row(static_cast<Index>(i));
      double z = 0.5 * (layer.bias[i].lo + layer.bias[i].hi);
      for (std::size_t j = 0; j < value.size(); ++j) z += w[j] * value[j];
      values.push_back(point(z));
      if (const UnitForm form = layer.form(i); form.linear) {
        slopes[k].push_back(point(form.piece(piece_at(form, z)).slope));
        next[i] = plain_value(form, z);
      } else if (std::isnan(layer.below[i])) {
        const Tensor here = Tensor::vector(std::vector<double>{z});
        const Box box{here, here};
        const auto slope = layer.phi[i]->slopes({z - 1e-9, z + 1e-9});
        const auto range = layer.phi[i]->range(std::span(&box, 1));
        slopes[k].push_back(slope.value_or(point(0)));
        next[i] = range ? (*range)[0].lower.doubles()[0] : 0;
      } else {
        const double slope = z > 0 ? layer.above[i] : layer.below[i];
        slopes[k].push_back(point(slope));
        next[i] = z * slope;
      }
    }
    narrow_jointly(layer, values, slopes[k]);
    for (Interval& slope : slopes[k]) slope = point(0.5 * (slope.lo + slope.hi));
    value = std::move(next);
  }
  return slopes;
}

}  // namespace lipscope

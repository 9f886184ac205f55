// SPDX-License-Identifier: Apache-2.0
#include "search/cone_search.h"

#include <algorithm>
#include <cmath>

#include "search/nearest_point.h"

namespace lipscope {
namespace {

using Vector = std::vector<double>;

// Both sides of a unit leave one of them, and a positive constant.
void add_to(CaseTree::InfeasibilityProof& proof, UnitId unit, double weight) {
  const auto known = std::ranges::find(proof.units, unit);
  if (known == proof.units.end()) {
    proof.units.push_back(unit);
    proof.weights.push_back(weight);
  } else {
    proof.weights[static_cast<std::size_t>(known - proof.units.begin())] += weight;
    proof.constant = true;
  }
}

}  // namespace

SearchRegion::Finding ConeSearch::examine(const Path& path, const std::vector<double>& known) {
  Finding view;
  auto spans = spans_of(net(), path);
  if (!spans) {
    view.empty = true;
    return view;
  }
  spans_ = *std::move(spans);
  view.slopes = slopes_of(net(), spans_);
  // A single piece gets a point well inside: known ones may lie on its edge.
  const bool single = std::ranges::all_of(view.slopes, [](const auto& layer) {
    return std::ranges::all_of(layer, [](const Interval& s) { return s.lo == s.hi; });
  });
  if (!single && !known.empty() && agrees(spans_, spans_at(net(), known))) {
    view.point = known;
  } else {
    find_point_or_proof(spans_, view);
  }
  return view;
}

std::optional<double> ConeSearch::split_at(UnitId unit) const {
  if (!is_unstable(net(), spans_, unit)) return std::nullopt;
  const auto [first, last] = spans_[unit.layer][unit.place];
  return midpoint(net().layers[unit.layer].form(unit.place).kink((first + last) / 2));
}

Slopes ConeSearch::slopes_at(const std::vector<double>& point) const {
  return slopes_of(net(), spans_at(net(), point));
}

ConeSearch::Sides ConeSearch::sides_of(const Spans& spans) const {
  const auto n = static_cast<std::size_t>(net().inputs());
  Sides sides;
  // The values before the units of a layer as functions of (x, t), while they are linear.
  std::vector<Vector> before;
  for (std::size_t k = 0; k < net().hidden(); ++k) {
    const DenseLayer& layer = net().layers[k];
    std::vector<Vector> values;
    for (std::size_t i = 0; i < spans[k].size(); ++i) {
      Vector value(n + 1, 0);
      const double* w = layer.row(static_cast<Index>(i));
      for (std::size_t j = 0; j < static_cast<std::size_t>(layer.in); ++j) {
        if (k == 0) {
          value[j] = w[j];
        } else if (w[j] != 0) {
          const auto [slope, offset] = net().layers[k - 1].form(j).piece(spans[k - 1][j].first);
          value[n] += w[j] * midpoint(offset);
          if (slope == 0) continue;
          for (std::size_t c = 0; c <= n; ++c) value[c] += w[j] * slope * before[j][c];
        }
      }
      value[n] += 0.5 * (layer.bias[i].lo + layer.bias[i].hi);
      const UnitForm form = layer.form(i);
      for (const bool above : {false, true}) {
        if (!has_side(form, spans[k][i], above)) continue;
        Vector row = value;
        row[n] -= midpoint(kink_of(form, spans[k][i], above));
        double norm = 0;
        for (const double e : row) norm += e * e;
        if (!(norm > 0)) continue;
        sides.units.push_back({k, i});
        sides.factors.push_back((above ? 1 : -1) / std::sqrt(norm));
        for (double& e : row) e *= sides.factors.back();
        sides.rows.push_back(std::move(row));
      }
      values.push_back(std::move(value));
    }
    bool linear = true;
    for (std::size_t i = 0; i < spans[k].size(); ++i)
      linear = linear && !undecided(layer, i, spans[k][i]);
    if (!linear) break;
    before = std::move(values);
  }
  sides.rows.emplace_back(n + 1, 0.0);
  sides.rows.back()[n] = 1;
  return sides;
}

void ConeSearch::find_point_or_proof(const Spans& spans, Finding& finding) const {
  const auto n = static_cast<std::size_t>(net().inputs());
  const auto [rows, units, factors] = sides_of(spans);
  const NearestPoint nearest = nearest_point(rows);
  double size = 0, least = HUGE_VAL;
  for (const double e : nearest.x) size += e * e;
  for (const Vector& row : rows) {
    double value = 0;
    for (std::size_t c = 0; c <= n; ++c) value += row[c] * nearest.x[c];
    least = std::min(least, value);
  }
  if (size > 1e-22 && least > 0) {
    for (std::size_t c = 0; c < n; ++c) finding.point.push_back(nearest.x[c] / nearest.x[n]);
    return;
  }
  // Small weights may be rounding only.
  for (const double least_weight : {1e-12, 1e-10, 1e-8}) {
    finding.proof = {};
    for (std::size_t i = 0; i < nearest.points.size(); ++i) {
      const std::size_t at = nearest.points[i];
      if (nearest.weights[i] < least_weight) continue;
      if (at == units.size()) {
        finding.proof.constant = true;
      } else {
        add_to(finding.proof, units[at], nearest.weights[i] * factors[at]);
      }
    }
    for (std::size_t u = 0; u < finding.proof.units.size(); ++u) {
      const auto [layer, place] = finding.proof.units[u];
      const UnitForm form = net().layers[layer].form(place);
      const PieceSpan& span = spans[layer][place];
      if (!has_side(form, span, true) || !has_side(form, span, false))
        finding.proof.weights[u] = std::fabs(finding.proof.weights[u]);
    }
    finding.empty = proves_empty(spans, finding.proof);
    if (finding.empty) break;
  }
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "robust/margin_bounds.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "net/small.h"
#include "pieces/signs.h"
#include "search/sharper_ranges.h"

namespace lipscope {
namespace {

Domain ball_domain(const Ball& ball) {
  Domain domain;
  domain.ball = ball;
  return domain;
}

}  // namespace

MarginBounds::MarginBounds(const LayeredNet& net, const Ball& ball, Index winner,
                           std::function<bool()> stop)
    : net_(net),
      stop_(std::move(stop)),
      domain_(ball_domain(ball), static_cast<std::size_t>(ball.center.size())),
      bounds_(net, domain_),
      ascent_(net, domain_, bounds_),
      usable_(domain_.bounded() && bounds_.bounded()) {
  if (!usable_) return;
  sharpen();
  ascent_.number_unstable_units(net.hidden());
  margins_ = margin_targets(winner);
}

void MarginBounds::sharpen() {
  constexpr int kManySteps = 8, kFewSteps = 2;
  constexpr double kMuchWork = 2e9;  // multiplications of a step
  const int steps = sharpening_cost(net_, bounds_) > kMuchWork ? kFewSteps : kManySteps;
  sharpen_ranges(net_, domain_, steps, stop_, bounds_, nullptr);
}

SlopeAscent::Targets MarginBounds::margin_targets(Index winner) const {
  const DenseLayer& last = net_.layers.back();
  const std::size_t hidden = net_.hidden();
  const std::vector<double> sizes = hidden > 0 ? bounds_.sizes_behind(hidden - 1) : domain_.size();
  const std::size_t m = to_size(last.in);
  SlopeAscent::Targets targets{.layer = net_.hidden(), .rows = {}, .constants = {}};
  const double* own = last.row(winner);
  const double* own_radius = last.radius_row(winner);
  for (Index j = 0; j < last.out; ++j) {
    double lost = 0;
    for (std::size_t e = 0; e < m; ++e) {
      const double w = own[e] - last.row(j)[e];
      targets.rows.push_back(w);
      double off = 0x1p-52 * std::fabs(w);
      if (own_radius != nullptr) off += own_radius[e] + last.radius_row(j)[e];
      lost += off * sizes[e];
    }
    lost = add_up(mul_up(lost, 1 + 0x1p-20), underflow_up(lost));
    targets.constants.push_back(
        sub_down(sub_down(last.bias[to_size(winner)].lo, last.bias[to_size(j)].hi), lost));
  }
  return targets;
}

bool MarginBounds::has_signs(const Part& part, const std::vector<double>& point) const {
  const Signs signs = signs_at(net_, point);
  for (std::size_t o = 0; o < unstable_units(); ++o) {
    const auto [k, i] = ascent_.open()[o];
    if (part.signs[o] != 0 && signs[k][i] != part.signs[o]) return false;
  }
  return true;
}

void MarginBounds::choose_splits(std::span<Part> parts, const SlopeAscent::Pass& pass) const {
  for (std::size_t r = 0; r < parts.size(); ++r) {
    double most = -1;
    parts[r].split = unstable_units();
    for (std::size_t o = 0; o < unstable_units(); ++o) {
      if (parts[r].signs[o] != 0 || !ascent_.has_sides(o)) continue;
      const auto [k, i] = ascent_.open()[o];
      const UnitLines& unit = bounds_.units()[k][i];
      const double a = net_.layers[k].below[i], b = net_.layers[k].above[i];
      const double v = pass.behind[k][r * to_size(net_.layers[k].out) + i];
      const bool chord = (v > 0) != (a <= b);
      const double gap = std::max(std::fabs(unit.up.offset), std::fabs(unit.down.offset));
      const double score = std::fabs(v) * gap * (chord ? 1 : 0.01);
      if (score <= most) continue;
      most = score;
      parts[r].split = o;
    }
  }
}

void MarginBounds::raise(std::span<Part> parts, std::span<const double> enough, int steps) const {
  SlopeAscent::Pass pass;
  ascent_.raise(margins_, parts, enough, steps, stop_, pass);
  choose_splits(parts, pass);
}

}  // namespace lipscope

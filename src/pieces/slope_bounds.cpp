// SPDX-License-Identifier: Apache-2.0
#include "pieces/slope_bounds.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "linalg/tensor/blas.h"
#include "net/small.h"
#include "ops/elementwise/elementwise.h"

namespace lipscope {
namespace {

bool same_line(const UnitLine& a, const UnitLine& b) {
  return a.slope == b.slope && a.offset == b.offset;
}

bool is_finite(const UnitLine& line) {
  return std::isfinite(line.slope) && std::isfinite(line.offset);
}

UnitLine only_line(const AffineRows& rows) {
  return {rows.weights.empty() ? 0 : rows.weights[0], rows.offsets[0]};
}

}  // namespace

SlopeBounds::SlopeBounds(const LayeredNet& net, const DomainSupport& domain,
                         const PreactivationBounds& bounds)
    : net_(net), domain_(domain), bounds_(bounds) {}

SlopeBounds::Choice SlopeBounds::choice_of(UnitId unit) const {
  const auto [k, i] = unit;
  const DenseLayer& layer = net_.layers[k];
  const Interval range = bounds_.ranges()[k][i];
  const UnitLines& lines = bounds_.units()[k][i];
  Choice choice{{lines.up, lines.up}, {lines.down, lines.down}};
  if (layer.below[i] == layer.above[i]) return choice;
  if (!std::isnan(layer.below[i])) {
    if (!(range.lo < 0 && range.hi > 0)) return choice;
    // Any slope between the two is valid, through 0.
    Pair& free = layer.below[i] <= layer.above[i] ? choice.down : choice.up;
    free = {{layer.below[i], 0}, {layer.above[i], 0}};
    return choice;
  }
  if (net_.hidden() < kDeepCurves || layer.phi[i] == nullptr || !layer.form(i).is_unstable(range))
    return choice;
  const Box box{Tensor::vector(std::vector<double>{range.lo}),
                Tensor::vector(std::vector<double>{range.hi})};
  const auto others = layer.phi[i]->other_lines(box);
  if (!others) return choice;
  const auto offer = [&](Pair& pair, const UnitLine& other) {
    if (!is_finite(pair.from) || !is_finite(other)) return;
    pair.to = other;
    const double slope = std::max(std::fabs(pair.from.slope), std::fabs(other.slope));
    const double offset = std::max(std::fabs(pair.from.offset), std::fabs(other.offset));
    const double size = add_up(mul_up(slope, magnitude(range)), offset);
    pair.error = add_up(mul_up(0x1p-49, size), underflow_up(size, magnitude(range)));
  };
  offer(choice.up, only_line(others->upper));
  offer(choice.down, only_line(others->lower));
  return choice;
}

// The mean as computed is off by at most four roundings of its terms, which the error outweighs. A
// mean of two lines through 0 with its slope between both has no error.
UnitLine SlopeBounds::mean(const Pair& pair, double mix, double sign) {
  const auto [from, to, error] = pair;
  const double t = std::clamp(mix, 0.0, 1.0);  // also for NaN: 0 or 1 or NaN, whose bound is none
  const double slope = std::clamp((1 - t) * from.slope + t * to.slope,
                                  std::min(from.slope, to.slope), std::max(from.slope, to.slope));
  if (error == 0) return {slope, from.offset};
  const double offset = (1 - t) * from.offset + t * to.offset;
  return {slope, sign > 0 ? add_up(offset, error) : sub_down(offset, error)};
}

void SlopeBounds::number_unstable_units(std::size_t end) {
  open_.clear();
  choices_.clear();
  number_.clear();
  for (std::size_t k = 0; k < end; ++k) {
    number_.emplace_back(to_size(net_.layers[k].out), -1);
    for (std::size_t i = 0; i < number_[k].size(); ++i) {
      const Choice choice = choice_of({k, i});
      if (same_line(choice.up.from, choice.up.to) && same_line(choice.down.from, choice.down.to))
        continue;
      number_[k][i] = std::ssize(open_);
      open_.push_back({k, i});
      choices_.push_back(choice);
    }
  }
}

bool SlopeBounds::has_sides(std::size_t open) const {
  return !std::isnan(net_.layers[open_[open].layer].below[open_[open].place]);
}

SlopeBounds::Part SlopeBounds::whole(Index target) const {
  Part part{.target = target,
            .signs = std::vector<std::int8_t>(open_.size()),
            .mixes = std::vector<float>(open_.size()),
            .multipliers = std::vector<float>(open_.size())};
  for (std::size_t o = 0; o < open_.size(); ++o) {
    if (!has_sides(o)) continue;
    const auto [k, i] = open_[o];
    const UnitLines& unit = bounds_.units()[k][i];
    const DenseLayer& layer = net_.layers[k];
    const double slope = layer.below[i] <= layer.above[i] ? unit.down.slope : unit.up.slope;
    part.mixes[o] =
        static_cast<float>((slope - layer.below[i]) / (layer.above[i] - layer.below[i]));
  }
  return part;
}

SlopeBounds::Targets SlopeBounds::unit_targets(std::size_t layer,
                                               const std::vector<std::size_t>& places) const {
  const DenseLayer& own = net_.layers[layer];
  Targets targets{.layer = layer, .rows = {}, .constants = {}};
  for (const std::size_t place : places) {
    for (const double sign : {1.0, -1.0}) {
      const double* row = own.row(static_cast<Index>(place));
      for (Index e = 0; e < own.in; ++e) targets.rows.push_back(sign * row[e]);
      const Interval bias = own.bias[place];
      targets.constants.push_back(
          sub_down(sign > 0 ? bias.lo : -bias.hi, bounds_.weight_uncertainty()[layer][place]));
    }
  }
  return targets;
}

void SlopeBounds::evaluate(const Targets& targets, std::span<Part> parts, Pass& pass) const {
  for (auto* matrices : {&pass.behind, &pass.before, &pass.slope, &pass.offset})
    matrices->resize(targets.layer);
  pass.count = std::ssize(parts);
  const std::size_t count = parts.size();
  const std::size_t m = to_size(net_.layers[targets.layer].in);
  std::vector<double> eta(count * m);
  std::vector<double> sum(count);
  for (std::size_t r = 0; r < count; ++r) {
    std::copy_n(&targets.rows[to_size(parts[r].target) * m], m, &eta[r * m]);
    sum[r] = targets.constants[to_size(parts[r].target)];
  }
  for (std::size_t k = targets.layer; k-- > 0;) {
    const DenseLayer& layer = net_.layers[k];
    const std::size_t n = to_size(layer.out);
    const double g = gamma_up(std::max(n, to_size(layer.in)) + 16);
    std::vector<double>&before = pass.before[k], &slopes = pass.slope[k], &offsets = pass.offset[k];
    before.resize(count * n);
    slopes.resize(count * n);
    offsets.resize(count * n);
    for (std::size_t r = 0; r < count; ++r) {
      const Part& part = parts[r];
      double total = 0, size = 0, moved = 0, rough = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double v = eta[r * n + i];
        const UnitLines& unit = bounds_.units()[k][i];
        UnitLine line = v > 0 ? unit.down : unit.up;
        double pull = 0;
        if (const Index o = number_[k][i]; o >= 0) {
          const std::int8_t sign = part.signs[to_size(o)];
          if (sign != 0) {
            line = {sign > 0 ? layer.above[i] : layer.below[i], 0};
            pull = sign * static_cast<double>(part.multipliers[to_size(o)]);
          } else if (const Pair& pair = v > 0 ? choices_[to_size(o)].down : choices_[to_size(o)].up;
                     !same_line(pair.from, pair.to)) {
            line = mean(pair, part.mixes[to_size(o)], v > 0 ? -1 : 1);
          }
        }
        slopes[r * n + i] = line.slope;
        offsets[r * n + i] = line.offset;
        const double straight = v * line.slope;
        const double u = straight - pull;
        before[r * n + i] = u;
        const double extra = v == 0 ? 0 : v * line.offset;
        const Interval bias = layer.bias[i];
        const double shift = u > 0 ? u * bias.lo : u * bias.hi;
        total += extra + shift;
        size += std::fabs(extra) + std::fabs(shift);
        moved += (std::fabs(straight) + std::fabs(u)) * bounds_.abs_sum_bound()[k][i];
        rough += std::fabs(u) * bounds_.weight_uncertainty()[k][i];
      }
      const double all = add_up(size, moved);
      const double error = add_up(mul_up(2 * g, all), underflow_up(all, bounds_.factors(k)));
      sum[r] = add_down(sum[r], sub_down(total, mul_up(add_up(error, rough), 1 + 0x1p-20)));
    }
    pass.behind[k] = std::move(eta);
    eta.resize(count * to_size(layer.in));
    gemm(std::ssize(parts), layer.in, layer.out, 1.0, {before.data(), layer.out},
         {layer.weights.data(), layer.in}, 0.0, eta.data(), layer.in);
  }
  const std::size_t inputs = domain_.inputs();
  std::vector<double> less(inputs);
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t j = 0; j < inputs; ++j) less[j] = -eta[r * inputs + j];
    const double bound = sub_down(sum[r], domain_.max_up(less.data()));
    if (bound > parts[r].bound) parts[r].bound = bound;  // not for NaN
  }
  pass.input = std::move(eta);
}

}  // namespace lipscope

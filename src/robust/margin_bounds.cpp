// SPDX-License-Identifier: Apache-2.0
#include "robust/margin_bounds.h"

#include <algorithm>
#include <cmath>

#include "estimate/jacobian_norm.h"
#include "linalg/blas.h"
#include "pieces/signs.h"
#include "pieces/small.h"

namespace lipscope {
namespace {

Domain ball_domain(const Ball& ball) {
  Domain domain;
  domain.ball = ball;
  return domain;
}

// 1/p + 1/q = 1. Norms with a smaller exponent are larger.
double dual_exponent_down(double p) {
  if (p == 1) return kInf;
  if (p == kInf) return 1;
  return std::max(1.0, div_down(p, sub_up(p, 1)));
}

}  // namespace

// What one evaluation of many parts leaves behind. Matrices have a row per part.
struct MarginBounds::Pass {
  Index count = 0;
  std::vector<std::vector<double>> behind, before;  // coefficients around the units of each layer
  std::vector<std::vector<double>> slope, offset;   // of the lines used
  std::vector<std::vector<double>> z;  // before the units, at the minimiser of the bound
  std::vector<double> input;           // coefficients of the input
  std::vector<double> first, second;   // moments of the gradients, slopes then multipliers
};

MarginBounds::MarginBounds(const LayeredNet& net, const Ball& ball, Index winner,
                           std::function<bool()> stop)
    : net_(net),
      stop_(std::move(stop)),
      center_(ball.center.doubles().begin(), ball.center.doubles().end()),
      radius_(ball.radius),
      norm_(ball.norm),
      dual_down_(dual_exponent_down(ball.norm.p())),
      domain_(ball_domain(ball), center_.size()),
      bounds_(net, domain_),
      usable_(domain_.bounded() && bounds_.bounded()) {
  if (!usable_) return;
  number_open_units();
  sharpen_ranges();
  margins_ = margin_targets(winner);
}

void MarginBounds::number_open_units() {
  open_.clear();
  number_.clear();
  for (std::size_t k = 0; k < net_.hidden(); ++k) {
    const DenseLayer& layer = net_.layers[k];
    number_.emplace_back(at(layer.out), -1);
    for (std::size_t i = 0; i < at(layer.out); ++i) {
      const Interval range = bounds_.ranges()[k][i];
      if (std::isnan(layer.below[i]) || layer.below[i] == layer.above[i]) continue;
      if (!(range.lo < 0 && range.hi > 0)) continue;
      number_[k][i] = std::ssize(open_);
      open_.push_back({k, i});
    }
  }
}

// The ranges of open units, from the second layer on: each end has slopes of its own.
void MarginBounds::sharpen_ranges() {
  constexpr int kSteps = 8, kFewSteps = 2;
  constexpr double kMuchWork = 2e9;  // multiplications of a step
  double weights = 0;                // of the layers before
  for (std::size_t k = 1; k < net_.hidden() && !stop_(); ++k) {
    weights += static_cast<double>(net_.layers[k - 1].weights.size());
    std::vector<std::size_t> places;
    for (const UnitId unit : open_) {
      if (unit.layer == k) places.push_back(unit.place);
    }
    if (places.empty()) continue;
    const Targets targets = unit_targets(k, places);
    std::vector<Part> ends;
    for (std::size_t t = 0; t < 2 * places.size(); ++t)
      ends.push_back(whole(static_cast<Index>(t)));
    Pass pass;
    const double work = 4 * static_cast<double>(places.size()) * weights;
    raise(targets, ends, std::vector<double>(ends.size()), work > kMuchWork ? kFewSteps : kSteps,
          pass);
    std::vector<Interval> ranges = bounds_.ranges()[k];
    for (std::size_t t = 0; t < places.size(); ++t) {
      Interval& range = ranges[places[t]];
      range = {std::max(range.lo, ends[2 * t].bound), std::min(range.hi, -ends[2 * t + 1].bound)};
    }
    bounds_.tighten(k, ranges);
    number_open_units();
  }
}

// The values before units, and less these.
MarginBounds::Targets MarginBounds::unit_targets(std::size_t layer,
                                                 const std::vector<std::size_t>& places) const {
  const DenseLayer& own = net_.layers[layer];
  Targets targets{.layer = layer, .rows = {}, .constants = {}};
  for (const std::size_t place : places) {
    for (const double sign : {1.0, -1.0}) {
      const double* row = own.row(static_cast<Index>(place));
      for (Index e = 0; e < own.in; ++e) targets.rows.push_back(sign * row[e]);
      const Interval bias = own.bias[place];
      targets.constants.push_back(
          sub_down(sign > 0 ? bias.lo : -bias.hi, bounds_.vague()[layer][place]));
    }
  }
  return targets;
}

MarginBounds::Targets MarginBounds::margin_targets(Index winner) const {
  const DenseLayer& last = net_.layers.back();
  const std::size_t hidden = net_.hidden();
  const std::vector<double> sizes = hidden > 0 ? bounds_.sizes_behind(hidden - 1) : domain_.size();
  const std::size_t m = at(last.in);
  Targets targets{.layer = net_.hidden(), .rows = {}, .constants = {}};
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
        sub_down(sub_down(last.bias[at(winner)].lo, last.bias[at(j)].hi), lost));
  }
  return targets;
}

MarginBounds::Part MarginBounds::whole(Index rival) const {
  Part part{.rival = rival,
            .signs = std::vector<std::int8_t>(open_.size()),
            .slopes = std::vector<float>(open_.size()),
            .multipliers = std::vector<float>(open_.size())};
  for (std::size_t o = 0; o < open_.size(); ++o) {
    const auto [k, i] = open_[o];
    const UnitLines& unit = bounds_.units()[k][i];
    const bool convex = net_.layers[k].below[i] <= net_.layers[k].above[i];
    part.slopes[o] = static_cast<float>(convex ? unit.down.slope : unit.up.slope);
  }
  return part;
}

bool MarginBounds::has_signs(const Part& part, const std::vector<double>& point) const {
  const Signs signs = signs_at(net_, point);
  for (std::size_t o = 0; o < open_.size(); ++o) {
    if (part.signs[o] != 0 && signs[open_[o].layer][open_[o].place] != part.signs[o]) return false;
  }
  return true;
}

void MarginBounds::backward(const Targets& targets, std::span<Part> parts, Pass& pass) const {
  const std::size_t count = parts.size();
  const std::size_t m = at(net_.layers[targets.layer].in);
  std::vector<double> eta(count * m);
  std::vector<double> sum(count);
  for (std::size_t r = 0; r < count; ++r) {
    std::copy_n(&targets.rows[at(parts[r].rival) * m], m, &eta[r * m]);
    sum[r] = targets.constants[at(parts[r].rival)];
  }
  for (std::size_t k = targets.layer; k-- > 0;) {
    const DenseLayer& layer = net_.layers[k];
    const std::size_t n = at(layer.out);
    const double g = gamma_up(std::max(n, at(layer.in)) + 16);
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
        Line line = v > 0 ? unit.down : unit.up;
        double pull = 0;
        if (const Index o = number_[k][i]; o >= 0) {
          const double a = layer.below[i], b = layer.above[i];
          const std::int8_t sign = part.signs[at(o)];
          if (sign != 0) {
            line = {sign > 0 ? b : a, 0};
            pull = sign * static_cast<double>(part.multipliers[at(o)]);
          } else if ((v > 0) == (a <= b)) {
            line = {
                std::clamp(static_cast<double>(part.slopes[at(o)]), std::min(a, b), std::max(a, b)),
                0};
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
        moved += (std::fabs(straight) + std::fabs(u)) * bounds_.reach()[k][i];
        rough += std::fabs(u) * bounds_.vague()[k][i];
      }
      const double all = add_up(size, moved);
      const double error = add_up(mul_up(2 * g, all), underflow_up(all));
      sum[r] = add_down(sum[r], sub_down(total, mul_up(add_up(error, rough), 1 + 0x1p-20)));
    }
    pass.behind[k] = std::move(eta);
    eta.resize(count * at(layer.in));
    gemm(std::ssize(parts), layer.in, layer.out, 1.0, {before.data(), layer.out},
         {layer.weights.data(), layer.in}, 0.0, eta.data(), layer.in);
  }
  const std::size_t inputs = center_.size();
  for (std::size_t r = 0; r < count; ++r) {
    const auto row = std::span(eta).subspan(r * inputs, inputs);
    const double reach = mul_up(radius_, pnorm_up(row, dual_down_));
    const double bound = add_down(sum[r], sub_down(dot_down(row, center_), reach));
    if (bound > parts[r].bound) parts[r].bound = bound;  // not for NaN
  }
  pass.input = std::move(eta);
}

void MarginBounds::forward(Pass& pass, std::size_t layers) const {
  const std::size_t count = at(pass.count), inputs = center_.size();
  std::vector<double> x(count * inputs), direction(inputs);
  for (std::size_t r = 0; r < count; ++r) {
    dual_vector(std::span(pass.input).subspan(r * inputs, inputs), norm_.dual(), direction);
    for (std::size_t j = 0; j < inputs; ++j)
      x[r * inputs + j] = center_[j] - radius_ * direction[j];
  }
  for (std::size_t k = 0; k < layers; ++k) {
    const DenseLayer& layer = net_.layers[k];
    const std::size_t n = at(layer.out);
    std::vector<double>& z = pass.z[k];
    z.resize(count * n);
    gemm(pass.count, layer.out, layer.in, 1.0, {x.data(), layer.in},
         {layer.weights.data(), layer.in, true}, 0.0, z.data(), layer.out);
    x.resize(count * n);
    for (std::size_t r = 0; r < count; ++r) {
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t e = r * n + i;
        z[e] += 0.5 * (layer.bias[i].lo + layer.bias[i].hi);
        x[e] = pass.slope[k][e] * z[e] + pass.offset[k][e];
      }
    }
  }
}

void MarginBounds::ascend(std::span<Part> parts, Pass& pass, int step, std::size_t layers) const {
  constexpr double kKeep = 0.8, kKeepSquare = 0.95, kWay = 0.3, kShrink = 0.9;
  const double way = kWay * std::pow(kShrink, step);
  const double whole_first = 1 - std::pow(kKeep, step + 1);
  const double whole_second = 1 - std::pow(kKeepSquare, step + 1);
  const std::size_t open = open_.size();
  for (std::size_t r = 0; r < parts.size(); ++r) {
    std::vector<double> scale(layers);
    for (std::size_t k = 0; k < scale.size(); ++k) {
      const std::size_t n = at(net_.layers[k].out);
      for (std::size_t i = 0; i < n; ++i)
        scale[k] = std::max(scale[k], std::fabs(pass.behind[k][r * n + i]));
    }
    for (std::size_t o = 0; o < open; ++o) {
      const auto [k, i] = open_[o];
      if (k >= layers) break;
      const DenseLayer& layer = net_.layers[k];
      const std::size_t e = r * at(layer.out) + i;
      const double a = layer.below[i], b = layer.above[i], v = pass.behind[k][e];
      const std::int8_t sign = parts[r].signs[o];
      double gradient = 0;
      if (sign != 0) {
        gradient = -sign * pass.z[k][e];
      } else if ((v > 0) == (a <= b)) {
        gradient = v * pass.z[k][e];
      }
      double &first = pass.first[r * open + o], &second = pass.second[r * open + o];
      first = kKeep * first + (1 - kKeep) * gradient;
      second = kKeepSquare * second + (1 - kKeepSquare) * gradient * gradient;
      if (second == 0) continue;
      const double move = way * (first / whole_first) / std::sqrt(second / whole_second);
      if (sign != 0) {
        parts[r].multipliers[o] = static_cast<float>(
            std::max(0.0, static_cast<double>(parts[r].multipliers[o]) + scale[k] * move));
      } else {
        parts[r].slopes[o] = static_cast<float>(
            std::clamp(static_cast<double>(parts[r].slopes[o]) + std::fabs(b - a) * move,
                       std::min(a, b), std::max(a, b)));
      }
    }
  }
}

void MarginBounds::choose_splits(std::span<Part> parts, const Pass& pass) const {
  for (std::size_t r = 0; r < parts.size(); ++r) {
    double most = -1;
    parts[r].split = open_.size();
    for (std::size_t o = 0; o < open_.size(); ++o) {
      if (parts[r].signs[o] != 0) continue;
      const auto [k, i] = open_[o];
      const UnitLines& unit = bounds_.units()[k][i];
      const double a = net_.layers[k].below[i], b = net_.layers[k].above[i];
      const double v = pass.behind[k][r * at(net_.layers[k].out) + i];
      const bool chord = (v > 0) != (a <= b);
      const double gap = std::max(std::fabs(unit.up.offset), std::fabs(unit.down.offset));
      const double score = std::fabs(v) * gap * (chord ? 1 : 0.01);
      if (score <= most) continue;
      most = score;
      parts[r].split = o;
    }
  }
}

void MarginBounds::raise(const Targets& targets, std::span<Part> parts,
                         std::span<const double> enough, int steps, Pass& pass) const {
  const std::size_t layers = targets.layer;
  pass.count = std::ssize(parts);
  for (auto* matrices : {&pass.behind, &pass.before, &pass.slope, &pass.offset, &pass.z})
    matrices->resize(layers);
  pass.first.assign(parts.size() * open_.size(), 0);
  pass.second.assign(parts.size() * open_.size(), 0);
  for (int step = 0;; ++step) {
    backward(targets, parts, pass);
    const bool done = std::ranges::all_of(
        parts, [&](const Part& part) { return part.bound > enough[at(part.rival)]; });
    if (done || step >= steps || open_.empty() || stop_()) return;
    forward(pass, layers);
    ascend(parts, pass, step, layers);
  }
}

void MarginBounds::raise(std::span<Part> parts, std::span<const double> enough, int steps) const {
  Pass pass;
  raise(margins_, parts, enough, steps, pass);
  choose_splits(parts, pass);
}

}  // namespace lipscope

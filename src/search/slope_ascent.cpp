// SPDX-License-Identifier: Apache-2.0
#include "search/slope_ascent.h"

#include <algorithm>
#include <cmath>

#include "linalg/tensor/blas.h"
#include "net/small.h"

namespace lipscope {

void SlopeAscent::forward(Pass& pass, std::size_t layers) const {
  const std::size_t count = to_size(pass.count), inputs = domain_.inputs();
  pass.z.resize(layers);
  std::vector<double> x(count * inputs), row(inputs);
  for (std::size_t r = 0; r < count; ++r) {
    std::copy_n(&pass.input[r * inputs], inputs, row.data());
    std::ranges::copy(domain_.lowest_point(row), &x[r * inputs]);
  }
  for (std::size_t k = 0; k < layers; ++k) {
    const DenseLayer& layer = net_.layers[k];
    const std::size_t n = to_size(layer.out);
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

void SlopeAscent::ascend(std::span<Part> parts, Pass& pass, int step, std::size_t layers) const {
  constexpr double kKeep = 0.8, kKeepSquare = 0.95, kWay = 0.3, kShrink = 0.9;
  const double way = kWay * std::pow(kShrink, step);
  const double whole_first = 1 - std::pow(kKeep, step + 1);
  const double whole_second = 1 - std::pow(kKeepSquare, step + 1);
  const std::size_t open = open_.size();
  for (std::size_t r = 0; r < parts.size(); ++r) {
    std::vector<double> scale(layers);
    for (std::size_t k = 0; k < scale.size(); ++k) {
      const std::size_t n = to_size(net_.layers[k].out);
      for (std::size_t i = 0; i < n; ++i)
        scale[k] = std::max(scale[k], std::fabs(pass.behind[k][r * n + i]));
    }
    for (std::size_t o = 0; o < open; ++o) {
      const auto [k, i] = open_[o];
      if (k >= layers) break;
      const std::size_t e = r * to_size(net_.layers[k].out) + i;
      const double v = pass.behind[k][e], z = pass.z[k][e];
      const std::int8_t sign = parts[r].signs[o];
      const auto& [from, to, error] = v > 0 ? choices_[o].down : choices_[o].up;
      const double gradient =
          sign != 0 ? -sign * z : v * ((to.slope - from.slope) * z + (to.offset - from.offset));
      double &first = pass.first[r * open + o], &second = pass.second[r * open + o];
      first = kKeep * first + (1 - kKeep) * gradient;
      second = kKeepSquare * second + (1 - kKeepSquare) * gradient * gradient;
      if (second == 0) continue;
      const double move = way * (first / whole_first) / std::sqrt(second / whole_second);
      float& moved = sign != 0 ? parts[r].multipliers[o] : parts[r].mixes[o];
      const double there = static_cast<double>(moved) + (sign != 0 ? scale[k] : 1) * move;
      moved = static_cast<float>(sign != 0 ? std::max(0.0, there) : std::clamp(there, 0.0, 1.0));
    }
  }
}

void SlopeAscent::raise(const Targets& targets, std::span<Part> parts,
                        std::span<const double> enough, int steps,
                        const std::function<bool()>& stop, Pass& pass) const {
  pass.first.assign(parts.size() * open_.size(), 0);
  pass.second.assign(parts.size() * open_.size(), 0);
  if (pass.remember) pass.best.assign(parts.size(), {});
  for (int step = 0;; ++step) {
    std::vector<double> before;
    for (const Part& part : parts) before.push_back(part.bound);
    evaluate(targets, parts, pass);
    for (std::size_t r = 0; pass.remember && r < parts.size(); ++r) {
      if (parts[r].bound > before[r] || step == 0) pass.best[r] = parts[r].mixes;
    }
    const bool done = std::ranges::all_of(
        parts, [&](const Part& part) { return part.bound > enough[to_size(part.target)]; });
    if (done || step >= steps || open_.empty() || stop()) return;
    forward(pass, targets.layer);
    ascend(parts, pass, step, targets.layer);
  }
}

}  // namespace lipscope

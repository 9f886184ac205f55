// SPDX-License-Identifier: Apache-2.0
#include "search/branching.h"

#include <algorithm>

namespace lipscope {
namespace {

constexpr std::size_t kMostSplits = 8;
constexpr double kLeastWeight = 0.4;    // of the largest one
constexpr double kTrialShare = 0.1;     // of all splits
constexpr double kSmallestGain = 1e-6;  // so that one side alone counts a little

}  // namespace

Branching::Branching(const LayeredNet& net) {
  for (std::size_t k = 0; k < net.hidden(); ++k)
    gains_.emplace_back(static_cast<std::size_t>(net.layers[k].out));
}

void Branching::keep_best(std::vector<Split>& splits) {
  std::ranges::stable_sort(splits, std::ranges::greater{}, &Split::weight);
  std::size_t count = std::min(splits.size(), kMostSplits);
  while (count > 1 && splits[count - 1].weight < kLeastWeight * splits[0].weight) --count;
  splits.resize(count);
}

std::vector<std::size_t> Branching::advise(const std::vector<Split>& splits) {
  ++asked_;
  std::optional<std::size_t> best, unknown;
  double most = -1;
  for (std::size_t s = 0; s < splits.size(); ++s) {
    const Gains& gains = of(splits[s].unit);
    if (gains.count == 0) {
      if (!unknown) unknown = s;
      continue;
    }
    const double mean = score(gains.below / gains.count, gains.above / gains.count);
    if (mean > most) {
      most = mean;
      best = s;
    }
  }
  if (!best) return {0};
  if (!unknown) return {*best};
  if (static_cast<double>(tried_) > kTrialShare * static_cast<double>(asked_))
    return {*unknown == 0 ? 0 : *best};
  ++tried_;
  return {*unknown, *best};
}

void Branching::learn(UnitId unit, double below, double above) {
  Gains& gains = gains_[unit.layer][unit.place];
  gains.below += below;
  gains.above += above;
  ++gains.count;
}

double Branching::score(double below, double above) {
  return std::max(below, kSmallestGain) * std::max(above, kSmallestGain);
}

}  // namespace lipscope

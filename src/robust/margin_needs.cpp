// SPDX-License-Identifier: Apache-2.0
#include "robust/margin_needs.h"

#include <algorithm>

#include "base/check.h"
#include "net/small.h"

namespace lipscope {

std::size_t pair_place(Index classes, Index i, Index j) {
  const Index low = std::min(i, j), high = std::max(i, j);
  LIPSCOPE_CHECK(low >= 0 && low < high && high < classes);
  return to_size(low * (2 * classes - low - 1) / 2 + high - low - 1);
}

MarginNeeds::MarginNeeds(const LogitTable& logits, std::span<const Index> labels,
                         std::span<const double> radii, Index classes)
    : classes_(classes), radii_(radii.begin(), radii.end()) {
  for (std::size_t s = 0; s < labels.size(); ++s) {
    const auto row = std::span(logits.entries).subspan(s * to_size(classes), to_size(classes));
    Sample sample{labels[s], {}};
    for (Index j = 0; j < classes; ++j)
      sample.margins.push_back(j == labels[s] ? kInf
                                              : row[to_size(labels[s])].lo - row[to_size(j)].hi);
    if (std::ranges::all_of(sample.margins, [](double m) { return m > 0; }))
      samples_.push_back(std::move(sample));
  }
}

std::vector<double> MarginNeeds::weights(const PairConstants& constants, double hope,
                                         const std::vector<bool>& settled) const {
  const auto is_settled = [&](std::size_t pair) { return !settled.empty() && settled[pair]; };
  constexpr double kLimits = 1e-3;  // beside one radius that may be decided
  std::vector<double> weights(constants.upper.size());
  for (const Sample& sample : samples_) {
    const auto constant = [&](Index j) {
      return constants.upper[pair_place(classes_, sample.winner, j)].value;
    };
    Index nearest = -1;
    double least = kInf;
    for (Index j = 0; j < classes_; ++j) {
      if (j == sample.winner) continue;
      const double radius = sample.margins[to_size(j)] / constant(j);
      if (nearest < 0 || radius < least) {
        nearest = j;
        least = radius;
      }
    }
    weights[pair_place(classes_, sample.winner, nearest)] += kLimits;
    for (const double radius : radii_) {
      if (radius <= least || hope * radius > least) continue;
      std::vector<Index> in_the_way;
      for (Index j = 0; j < classes_; ++j) {
        if (j != sample.winner && sample.margins[to_size(j)] < radius * constant(j))
          in_the_way.push_back(j);
      }
      if (std::ranges::any_of(in_the_way, [&](Index j) {
            return is_settled(pair_place(classes_, sample.winner, j));
          }))
        continue;
      for (const Index j : in_the_way)
        weights[pair_place(classes_, sample.winner, j)] +=
            1 / static_cast<double>(in_the_way.size());
    }
  }
  return weights;
}

}  // namespace lipscope

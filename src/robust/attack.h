// SPDX-License-Identifier: Apache-2.0
// Inputs of another class near samples.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lipscope/graph.h"
#include "lipscope/norm.h"
#include "robust/logit_ranges.h"

namespace lipscope {

struct AttackQuestion {
  std::span<const double> points;  // samples one after another
  std::span<const Index> winners;  // the class of each
  Norm norm = Norm(2);
  std::uint64_t seed = 1;
  std::function<bool()> stop;  // costs nearness only
};

// Distance, rounded up, to a point where another logit than the winner's is proved to be larger;
// infinity where none was found. Projections onto linearised class boundaries from several starts,
// for the nearest classes [robustness-5].
[[nodiscard]] std::vector<double> attack_distances(const Graph& graph, const LogitRanges& ranges,
                                                   const AttackQuestion& question);

}  // namespace lipscope

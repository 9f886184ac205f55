// SPDX-License-Identifier: Apache-2.0
// How much the Jacobian of a graph at a point stretches a direction, proved.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "lipscope/graph.h"
#include "lipscope/norm.h"

namespace lipscope {

struct StretchQuestion {
  NormPair norms;
  std::span<const double> at, direction;  // over all floating inputs
  double expected = 0;                    // about this; what comes near it is good enough
  std::function<bool()> should_stop = [] { return false; };
};

// |J v| / |v| from below: by intervals and distances [attention-20], and where those have grown too
// wide in wide numbers [attention-21]. Nothing when an operator does not tell.
[[nodiscard]] std::optional<double> proved_stretch(const Graph& graph,
                                                   const StretchQuestion& question);

}  // namespace lipscope

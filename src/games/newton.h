// SPDX-License-Identifier: Apache-2.0
// Newton's method for the potential, in the logits of the column player [games-8].
#pragma once

#include <optional>

#include "games/point.h"

namespace lipscope {

struct NewtonStep {
  std::vector<double> direction;  // of the logits
  double decrement = 0;           // minus the slope of the potential along it; >= 0
};

// Nothing if the factorisation fails. Costs rows * cols^2 multiplications.
[[nodiscard]] std::optional<NewtonStep> newton_step(const Board& board, double tau,
                                                    const Point& point);

}  // namespace lipscope

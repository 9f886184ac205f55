// SPDX-License-Identifier: Apache-2.0
// The payoffs less one number in their middle, which changes the game by a constant only but keeps
// a common offset out of every rounding error.
#pragma once

#include <vector>

#include "lipscope/game.h"

namespace lipscope {

struct Centred {
  double shift = 0;             // middle of the range of the payoffs
  double largest = 0;           // largest |entry|
  std::vector<double> entries;  // payoff - shift, each rounded once to nearest
};
[[nodiscard]] Centred centre(const Game& game);

[[nodiscard]] std::vector<double> transposed(Index rows, Index cols,
                                             const std::vector<double>& entries);

// Lines of this length that are worth handing to another thread.
[[nodiscard]] constexpr Index grain(Index length) { return 1 + (Index(1) << 16) / (1 + length); }

}  // namespace lipscope

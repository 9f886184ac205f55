// SPDX-License-Identifier: Apache-2.0
#include "games/centred.h"

#include <algorithm>
#include <cmath>

namespace lipscope {

Centred centre(const Game& game) {
  const auto [low, high] = std::minmax_element(game.payoff.begin(), game.payoff.end());
  Centred result{.shift = *low / 2 + *high / 2, .largest = 0, .entries = game.payoff};
  for (double& entry : result.entries) {
    entry -= result.shift;
    result.largest = std::max(result.largest, std::fabs(entry));
  }
  return result;
}

std::vector<double> transposed(Index rows, Index cols, const std::vector<double>& entries) {
  constexpr Index kTile = 32;
  std::vector<double> out(entries.size());
  for (Index i0 = 0; i0 < rows; i0 += kTile) {
    for (Index j0 = 0; j0 < cols; j0 += kTile) {
      for (Index i = i0; i < std::min(rows, i0 + kTile); ++i) {
        for (Index j = j0; j < std::min(cols, j0 + kTile); ++j) {
          out[static_cast<std::size_t>(j * rows + i)] =
              entries[static_cast<std::size_t>(i * cols + j)];
        }
      }
    }
  }
  return out;
}

}  // namespace lipscope

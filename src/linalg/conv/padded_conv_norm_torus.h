// SPDX-License-Identifier: Apache-2.0
// Convolutions on a torus. Internal to linalg.
#pragma once

#include <array>
#include <vector>

#include "linalg/norm/norm_map.h"

namespace lipscope {

// Per axis `grid` cells, of which every stride-th carries an output (the stride divides the grid);
// a tap reads the cell `offsets[tap]` further, modulo the grid.
struct Torus {
  Index ins = 1, outs = 1;
  ConvShape::Spatial grid{1, 1, 1}, stride{1, 1, 1};
  std::array<std::vector<Index>, 3> offsets;
  [[nodiscard]] Index taps() const {
    Index product = 1;
    for (const auto& axis : offsets) product *= static_cast<Index>(axis.size());
    return product;
  }
};

struct TorusBound {
  double lower = 0, upper = kInf;
  std::vector<double> vector;  // approximate right singular vector [ins, grid...], or empty
};

// Spectral norm for exact weights [outs, ins, taps], from its Fourier blocks [norms-12]: as narrow
// as rounding allows. Gives up (upper = inf) if that is too much work.
[[nodiscard]] TorusBound torus_spectral(const Torus& torus, const double* weights,
                                        const NormEffort& effort);

}  // namespace lipscope

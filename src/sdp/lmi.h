// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sdp/chain.h"

namespace lipscope {

// One number per entry of each phi: how much its slope restriction counts.
using Multipliers = std::vector<std::vector<double>>;

// Whether |W_L dx_L|^2 <= rho |dx_0|^2 follows from the slope restrictions with these multipliers
// [global-1], proved by a Cholesky factorisation of the matrix of [global-2]; false when that does
// not succeed. Any non-negative multipliers may be tried. Takes about as much memory as twice the
// squares of the layer sizes.
[[nodiscard]] bool proves_chain(const Chain& chain, const Multipliers& multipliers, double rho);

// sqrt(rho) 2^exponent, rounded up.
[[nodiscard]] double chain_constant_up(const Chain& chain, double rho);

}  // namespace lipscope

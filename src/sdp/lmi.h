// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "linalg/block_definite.h"
#include "sdp/network.h"

namespace lipscope {

// One number per entry of each node with slopes, in order: how much its slope restriction counts.
using Multipliers = std::vector<std::vector<double>>;

// Whether |dy|^2 <= rho |dx|^2 for the differences of output and input follows from the slope
// restrictions with these multipliers [global-1], proved by a Cholesky factorisation of the matrix
// of [global-2]; false when that does not succeed. Any non-negative multipliers may be tried.
// `stop` is asked now and then; nothing is proved when it says so. Whether a factorisation succeeds
// may depend on the order of its sums, hence on the machine. With `caution` more than needed is
// taken off the diagonal: what is proved then can be proved without caution on every machine.
[[nodiscard]] bool proves(const SdpNetwork& network, const Multipliers& multipliers, double rho,
                          const std::function<bool()>& stop = {}, bool caution = false);
[[nodiscard]] BlockCost proof_cost(const SdpNetwork& network);

// sqrt(rho) 2^exponent, rounded up.
[[nodiscard]] double constant_up(const SdpNetwork& network, double rho);

}  // namespace lipscope

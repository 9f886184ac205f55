// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "linalg/norm/block_definite.h"
#include "net/unit_network.h"

namespace lipscope {

// One number per entry of each node with slopes, in order: how much its slope restriction counts.
using Multipliers = std::vector<std::vector<double>>;

// Whether |dy|^2 <= rho |dx|^2 for the differences of output and input follows from the slope
// restrictions with these multipliers [global-1], proved by a Cholesky factorisation of the matrix
// of [global-2]; false when that does not succeed. Any non-negative multipliers may be tried.
// `stop` is asked now and then; nothing is proved when it says so. Whether a factorisation succeeds
// may depend on the order of its sums, hence on the machine. With `portable_margin` more than
// needed is taken off the diagonal: what is proved then can be proved without that margin on every
// machine.
[[nodiscard]] bool proves(const UnitNetwork& network, const Multipliers& multipliers, double rho,
                          const std::function<bool()>& stop = {}, bool portable_margin = false);

// Whether every difference of outputs is G z with |z| <= |dx| [global-8]; G is lower triangular,
// given by rows with its zeros. The rest as above, with rho = 1.
[[nodiscard]] bool proves_ellipsoid(const UnitNetwork& network, const Multipliers& multipliers,
                                    const std::vector<double>& factor,
                                    const std::function<bool()>& stop = {},
                                    bool portable_margin = false);
// About the smallest G that the multipliers prove, with that margin; empty where they prove none.
[[nodiscard]] std::vector<double> smallest_ellipsoid(const UnitNetwork& network,
                                                     const Multipliers& multipliers,
                                                     const std::function<bool()>& stop = {});

[[nodiscard]] BlockCost proof_cost(const UnitNetwork& network);

// sqrt(rho) 2^exponent, rounded up.
[[nodiscard]] double constant_up(const UnitNetwork& network, double rho);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Networks with their inputs or outputs multiplied by factors: other norms of a Jacobian are at
// most a constant times the l2 norm of the scaled one [pieces-7], [pieces-12].
#pragma once

#include <optional>
#include <vector>

#include "net/layered_net.h"

namespace lipscope {

struct ScaledNet {
  LayeredNet net;
  double size = 1;  // the norm is at most this times the l2 norm for `net`
};

// One output, from l-infinity (the sum of the absolute entries of its gradient g):
// |g|_1 <= |1/f|_2 |f g|_2. Nothing for factors of another number, or too large or small.
[[nodiscard]] std::optional<ScaledNet> scaled_row(const LayeredNet& net, Index row,
                                                  const std::vector<double>& factors);

// The whole Jacobian, from l-infinity, to l1 or both: factors of the inputs, then of the outputs.
[[nodiscard]] std::optional<ScaledNet> scaled_whole(const LayeredNet& net, bool inputs,
                                                    bool outputs,
                                                    const std::vector<double>& factors);

}  // namespace lipscope

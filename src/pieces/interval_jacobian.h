// SPDX-License-Identifier: Apache-2.0
// All entries of the Jacobian at once, by interval arithmetic from the output back to the input
// [local-8].
#pragma once

#include "lipscope/norm.h"
#include "net/layered_net.h"

namespace lipscope {

// Matrices within a distance, entry by entry: rows x cols, one row per output.
struct JacobianBox {
  Index rows = 0, cols = 0;
  std::vector<double> middle, radius;
};

// Holds every Jacobian whose slopes lie in the intervals, all rounding included.
[[nodiscard]] JacobianBox interval_jacobian(const LayeredNet& net, const Slopes& slopes);

// To what both allow; intervals by rows.
void intersect_with(JacobianBox& box, const std::vector<Interval>& entries);

// Upper bound of the norm of every matrix in the box; +inf where an entry has no bound.
[[nodiscard]] double norm_up(const JacobianBox& box, const NormPair& norms);

}  // namespace lipscope

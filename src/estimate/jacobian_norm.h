// SPDX-License-Identifier: Apache-2.0
// Operator norms of Jacobians at many points at once, from below.
#pragma once

#include <random>
#include <vector>

#include "lipscope/evaluate.h"
#include "lipscope/norm.h"

namespace lipscope {

// The vector g with <g, y> = |y|_q and |g|_{q*} = 1 (zero for y = 0).
void dual_vector(std::span<const double> y, const Norm& q, std::span<double> g);

struct JacobianNorms {
  std::vector<double> value;  // one per sample; rounding not accounted for
  std::vector<double>
      direction;  // samples one after another, each of unit length in the input norm
};

// Boyd's iteration [norms: lower] on J at `count` points, the columns of `points` one after
// another, starting from `direction`. Each step costs one jvp and one vjp.
[[nodiscard]] JacobianNorms jacobian_norms(const Graph& graph, std::span<const double> points,
                                           Index count, const NormPair& norms,
                                           std::vector<double> direction, int steps);

}  // namespace lipscope

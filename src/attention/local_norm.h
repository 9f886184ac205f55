// SPDX-License-Identifier: Apache-2.0
// The l2 norm of a graph's Jacobian at a point, and on boxes around it, for any graph.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lipscope/bound.h"

namespace lipscope {

struct LocalNorm {
  std::optional<Bound> lower, upper;
  std::vector<double> direction;  // the Jacobian stretches it by about the norm
};

struct LocalNormEffort {
  double proof = 2e8;     // entries of matrices that proofs may visit
  double wide = 0;        // the same for a lower bound in wide numbers [attention-21]
  Index real_rows = 512;  // outputs up to which the Jacobian is formed in plain arithmetic
  double tolerance = 1e-10;
  int steps = 100;  // products with the Jacobian and its transpose
  std::function<bool()> should_stop = [] { return false; };
};

// Of output 0, or of some of its entries (empty: all). Lanczos finds a direction; the lower bound
// is proved by [attention-17], [attention-20] or [attention-21] where that is affordable and real
// otherwise; the upper bound is proved or real where the Jacobian can be formed, an estimate
// otherwise.
[[nodiscard]] LocalNorm local_norm(const Graph& graph, std::span<const Tensor> inputs,
                                   const std::vector<Index>& rows, const LocalNormEffort& effort);

// Proved upper bound of the norm for all inputs in the boxes [attention-17]; nothing when it is not
// affordable or an operator does not tell.
[[nodiscard]] std::optional<double> box_norm_up(const Graph& graph, std::span<const Box> boxes,
                                                const std::vector<Index>& rows,
                                                const LocalNormEffort& effort);

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// One point of the solver: logits of the column player, the best response of the row player to
// them, and how far the logits are from the best response to that. Plain arithmetic, no proofs.
#pragma once

#include <vector>

#include "lipscope/tensor.h"

namespace lipscope {

// Payoffs scaled to |entry| <= 1, with at least as many rows as columns.
struct Board {
  Index rows = 0, cols = 0;
  std::vector<double> entries;

  [[nodiscard]] std::vector<double> times(const std::vector<double>& y) const;
  [[nodiscard]] std::vector<double> transposed_times(const std::vector<double>& x) const;
};

struct Point {
  std::vector<double> w;         // ln y: normalised logits
  std::vector<double> y, x;      // x is the best response to y
  std::vector<double> row, col;  // By and B'x
  std::vector<double> rho;       // B'x / tau - ln y less its mean under y: 0 at the equilibrium
  double potential = 0;          // -min_x f(x, y) / tau, which the equilibrium minimises
  double divergence = 0;         // KL(y, best response to x): duality gap / tau
  // The larger of 2 divergence and the variance of rho under y, which agree to first order; the
  // variance alone is blind to actions that y does not play.
  double residual = 0;
};

// From any logits.
[[nodiscard]] Point evaluate(const Board& board, double tau, std::vector<double> logits);

// (1 - damping) y + damping T(y), T(y) the best response to x.
[[nodiscard]] Point respond(const Board& board, double tau, double damping, const Point& point);

// Normalises z in place to log-probabilities and returns ln sum exp z.
double log_softmax(std::vector<double>& z);

}  // namespace lipscope

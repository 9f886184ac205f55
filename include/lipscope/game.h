// SPDX-License-Identifier: Apache-2.0
// Entropy-regularised zero-sum games: min_x max_y f(x, y) over two simplices,
//   f(x, y) = x'Ay - tau H(x) + tau H(y),   H(x) = -sum x ln x,   tau > 0.
// The equilibrium is unique: x = softmax(-Ay / tau), y = softmax(A'x / tau). Theory: [games-*] in
// docs/theory/games.md.
//
//   const Game game = make_game(read_array("payoff.csv"), 0.1);
//   const Equilibrium found = solve_game(game);
//   const GameProof proof = prove_game(game, found.x, found.y);   // proof.gap.upper, ...
//
// Thread safety: pure functions.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "lipscope/tensor.h"

namespace lipscope {

// Rows are the actions of the minimising player. Entries are finite, there is at least one.
struct Game {
  Index rows = 0, cols = 0;
  std::vector<double> payoff;  // row-major
  double tau = 1;
};

// One dimension is one row. Throws kUsage unless tau is positive and finite, and when it is so
// small against the payoffs that payoff / tau overflows; kShape for an array without entries or
// with other than one or two dimensions; kBadFile naming row and column (from 0) of an entry that
// is not finite; kUnsupported for an integer that no double holds. `name` stands for the array in
// messages.
[[nodiscard]] Game make_game(const Tensor& payoff, double tau,
                             std::string_view name = "payoff matrix");

struct GameLimits {
  std::function<bool()> should_stop;  // asked once per iteration; the best point so far is returned
};

// x and y sum to 1 up to rounding. Nothing here is proved.
struct Equilibrium {
  std::vector<double> x, y;
  Index iterations = 0;     // of all phases together
  std::string_view method;  // the phase that ended it
  bool converged = false;   // residual at the level of rounding
};
[[nodiscard]] Equilibrium solve_game(const Game& game, const GameLimits& limits = {});

// Proved: lower <= exact value <= upper, every rounding included.
struct Enclosure {
  double lower = 0, upper = 0;
};

// About the strategies x / sum x and y / sum y; the distances are those of x and y as given.
struct GameProof {
  Enclosure value;                        // of f at the equilibrium
  Enclosure gap;                          // max_y' f(x, y') - min_x' f(x', y) [games-3]
  double distance_x = 2, distance_y = 2;  // upper bounds of |x - x*|_1 and |y - y*|_1 [games-4]
  double distance = 4;                    // of |x - x*|_1 + |y - y*|_1
  Enclosure exploitability;               // the same gap for tau = 0
  Enclosure nash_value;                   // of the value for tau = 0
};
// For any x, y >= 0 with a positive finite sum and the sizes of the game; kUsage otherwise.
[[nodiscard]] GameProof prove_game(const Game& game, const std::vector<double>& x,
                                   const std::vector<double>& y);

// Contraction of y -> softmax(A' softmax(-Ay / tau) / tau) in the 1-norm [games-5]; no other pair
// of norms and no shift of the payoffs gives a smaller factor [games-6].
struct Contraction {
  Enclosure spread;           // of D = max |a_ij - a_kj - a_il + a_kl|
  double factor = 0;          // upper bound of (D / (4 tau))^2; +inf: not bounded
  double tau_guaranteed = 0;  // the iteration contracts for every tau above this; D / 4, rounded up
};
// `max_work`: entries that may be looked at; when it is spent, a bound of D takes its place.
[[nodiscard]] Contraction contraction_of(const Game& game, double max_work = 2e10);

// The (damped) double-softmax iteration from uniform y, against bounds of its error. Sound in real
// arithmetic; roundings are not included.
struct TraceStep {
  Index iteration = 0;
  double error = 0;         // |y_k - y*|_1, y* the equilibrium given
  double a_priori = 0;      // bounds known before step 1 (of error from iteration 1 on)
  double a_posteriori = 0;  // bounds known after step k
};
struct GameTrace {
  double damping = 1;  // y <- (1 - damping) y + damping T(y)
  double rate = 0;     // proved factor per step: of |y - y*|_1, or of the excess [games-7]
  bool contracts = true;
  std::vector<TraceStep> steps;
};
[[nodiscard]] GameTrace trace_game(const Game& game, const Equilibrium& equilibrium, double factor,
                                   Index max_steps, const GameLimits& limits = {});

}  // namespace lipscope

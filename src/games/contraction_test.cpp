// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "games/reference_for_test.h"
#include "linalg/norm/operator_norm.h"
#include "lipscope/game.h"

namespace lipscope {
namespace {

using namespace game_reference;

TEST(GameContraction, SpreadIsThatOfFourLoops) {
  Random random(1);
  for (int trial = 0; trial < 300; ++trial) {
    const Game game = random_game(random, integer(random, 1, 20), integer(random, 1, 20),
                                  log_uniform(random, 1e-3, 1e3), trial % 4);
    const Contraction found = contraction_of(game);
    const Real truth = spread(game);
    EXPECT_LE(found.spread.lower, truth);
    EXPECT_GE(found.spread.upper, truth);
    EXPECT_LE(found.spread.upper, truth + 1e-15L * (1 + truth) * (trial % 4 == 3 ? 1e6L : 1));
    EXPECT_GE(found.tau_guaranteed, truth / 4);
    const Real root = truth / (4 * Real(game.tau));
    EXPECT_GE(found.factor, root * root);
    const Contraction hurried = contraction_of(game, 0);
    EXPECT_GE(hurried.spread.upper, truth);
    EXPECT_LE(hurried.spread.upper, 2 * truth + 1e-9L);
  }
  const Game signs{.rows = 2, .cols = 2, .payoff = {1, -1, -1, 1}, .tau = 2};
  EXPECT_EQ(contraction_of(signs).spread.upper, 4);
  EXPECT_EQ(contraction_of(signs).tau_guaranteed, 1);
  EXPECT_EQ(contraction_of(signs).factor, 0.25);
  // No shift of these payoffs has entries below 1 in size.
  const Game cycle{.rows = 3, .cols = 3, .payoff = {1, -1, 0, 0, 1, -1, -1, 0, 1}, .tau = 1};
  EXPECT_EQ(contraction_of(cycle).tau_guaranteed, 0.75);
}

// The ratio |T(y) - T(z)|_1 / |y - z|_1 never exceeds the factor ...
TEST(GameContraction, BoundsTheIteration) {
  Random random(2);
  for (int trial = 0; trial < 3000; ++trial) {
    const Game game = random_game(random, integer(random, 2, 5), integer(random, 2, 5),
                                  log_uniform(random, 0.1, 10), trial % 3);
    Vector logits[2];
    for (Vector& z : logits) {
      for (Index j = 0; j < game.cols; ++j)
        z.push_back(3 * Real(std::normal_distribution<double>()(random)));
    }
    const Vector y = softmax(logits[0]), z = softmax(logits[1]);
    const Real moved = distance(col_response(game, row_response(game, y)),
                                col_response(game, row_response(game, z)));
    EXPECT_LE(moved, contraction_of(game).factor * distance(y, z) + 1e-18L);
  }
}

// ... and reaches it at the uniform point of matching pennies.
TEST(GameContraction, IsAttained) {
  for (const double tau : {0.7, 1.0, 5.0}) {
    const Game game{.rows = 2, .cols = 2, .payoff = {1, -1, -1, 1}, .tau = tau};
    const Vector y{0.5L + 1e-6L, 0.5L - 1e-6L}, u{0.5L, 0.5L};
    const Real ratio = distance(col_response(game, row_response(game, y)), u) / distance(y, u);
    EXPECT_GT(ratio, 0.9999 * contraction_of(game).factor);
    EXPECT_LT(ratio, contraction_of(game).factor * (1 + 1e-10));
  }
}

// tau_guaranteed is sharp there, too: one per cent below it the iteration does not settle.
TEST(GameContraction, ThresholdIsAttained) {
  for (const double tau : {0.99, 1.01}) {
    const Game game{.rows = 2, .cols = 2, .payoff = {1, -1, -1, 1}, .tau = tau};
    Vector y{0.5001L, 0.4999L};
    for (int step = 0; step < 3000; ++step) y = col_response(game, row_response(game, y));
    EXPECT_EQ(std::fabs(y[0] - 0.5L) < 1e-6L, tau > contraction_of(game).tau_guaranteed);
  }
}

// [games-6]: no pair of norms gives a smaller factor, whatever is subtracted from rows and columns.
TEST(GameContraction, NoOtherNormsAreBetter) {
  Random random(3);
  const char* const pairs[] = {"1:1",     "1:2",   "1:inf", "2:2",   "2:inf",
                               "inf:inf", "inf:1", "2:1",   "1.5:3", "3:1.5"};
  for (int trial = 0; trial < 200; ++trial) {
    Game game = random_game(random, integer(random, 2, 9), integer(random, 2, 9), 1, trial % 3);
    const double best = contraction_of(game).factor;
    std::normal_distribution<double> normal;
    const double size = trial % 2 == 0 ? 0 : 0.3;
    std::vector<double> u(static_cast<std::size_t>(game.rows)),
        v(static_cast<std::size_t>(game.cols));
    for (double& value : u) value = size * normal(random);
    for (double& value : v) value = size * normal(random);
    for (std::size_t i = 0; i < u.size(); ++i) {
      for (std::size_t j = 0; j < v.size(); ++j) game.payoff[i * v.size() + j] += u[i] + v[j];
    }
    for (const char* text : pairs) {
      const NormPair norms = parse_norms(text);
      const double norm = matrix_norm({game.rows, game.cols, game.payoff.data()}, norms).upper;
      const double root = std::exp2(1 / norms.in.p() - 1 / norms.out.p() - 1) * norm;
      EXPECT_GE(root * root, best * (1 - 1e-9)) << text;
    }
  }
}

TEST(GameTrace, BoundsHoldStepByStep) {
  Random random(4);
  for (int trial = 0; trial < 200; ++trial) {
    const Game game = random_game(random, integer(random, 2, 12), integer(random, 2, 12),
                                  log_uniform(random, 0.1, 20), trial % 3);
    const Equilibrium found = solve_game(game);
    const GameTrace trace = trace_game(game, found, contraction_of(game).factor, 300);
    EXPECT_EQ(trace.contracts, contraction_of(game).factor < 1);
    ASSERT_GE(trace.steps.size(), 2U);
    for (const TraceStep& step : trace.steps) {
      EXPECT_LE(step.error, step.a_priori + 1e-13) << step.iteration;
      EXPECT_LE(step.error, step.a_posteriori + 1e-13) << step.iteration;
    }
  }
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "games/reference_for_test.h"
#include "lipscope/error.h"
#include "lipscope/game.h"

namespace lipscope {
namespace {

using namespace game_reference;

std::vector<double> random_strategy(Random& random, Index size, int kind) {
  std::exponential_distribution<double> exponential;
  std::vector<double> out(static_cast<std::size_t>(size));
  double total = 0;
  for (double& value : out) {
    value = exponential(random);
    if (kind == 1 && integer(random, 0, 2) == 0) value = 0;
    if (kind == 2) value = std::pow(value, 40);
    total += value;
  }
  if (total == 0) total = out[0] = 1;
  for (double& value : out) value /= total;
  return out;
}

TEST(GameProof, EnclosesGapAndValueAtAnyPoint) {
  Random random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const Game game = random_game(random, integer(random, 1, 12), integer(random, 1, 12),
                                  log_uniform(random, 1e-3, 1e3), trial % 3);
    const auto x = random_strategy(random, game.rows, trial % 4),
               y = random_strategy(random, game.cols, trial % 5);
    const GameProof proof = prove_game(game, x, y);
    const Vector xn = normalised(x), yn = normalised(y);
    const Real high = upper_value(game, xn), low = lower_value(game, yn), gap = high - low;
    const Real slack = 1e-17L * (1 + Real(game.tau)) * 50;  // of the reference
    EXPECT_LE(proof.gap.lower, gap + slack);
    EXPECT_GE(proof.gap.upper, gap - slack);
    EXPECT_LE(proof.gap.upper - proof.gap.lower, 1e-11 * (1 + game.tau)) << game.tau;
    EXPECT_LE(proof.value.lower, low + slack);
    EXPECT_GE(proof.value.upper, high - slack);
    EXPECT_LE(proof.value.upper - proof.value.lower, double(gap) + 1e-11 * (1 + game.tau));
    const Vector col = col_payoffs(game, xn), row = row_payoffs(game, yn);
    const Real exploit =
        *std::max_element(col.begin(), col.end()) - *std::min_element(row.begin(), row.end());
    EXPECT_LE(proof.exploitability.lower, exploit + slack);
    EXPECT_GE(proof.exploitability.upper, exploit - slack);
    EXPECT_LE(proof.exploitability.upper - proof.exploitability.lower, 1e-13);
  }
}

TEST(GameProof, DistancesDominateTheTruth) {
  Random random(2);
  for (int trial = 0; trial < 150; ++trial) {
    const Game game = random_game(random, integer(random, 1, 8), integer(random, 1, 8),
                                  log_uniform(random, 0.15, 50), trial % 3);
    const Point truth = equilibrium(game);
    const Real value = upper_value(game, truth.x);
    const Equilibrium found = solve_game(game);
    for (const double noise : {0.0, 1e-12, 1e-8, 1e-4, 0.1, 3.0}) {
      std::vector<double> x = found.x, y = found.y;
      std::normal_distribution<double> normal;
      for (double& w : x) w *= std::exp(noise * normal(random));
      for (double& w : y) w *= std::exp(noise * normal(random));
      const GameProof proof = prove_game(game, x, y);
      const Real dx = distance(x, truth.x), dy = distance(y, truth.y), slack = 1e-16L;
      EXPECT_GE(proof.distance_x, dx - slack);
      EXPECT_GE(proof.distance_y, dy - slack);
      EXPECT_GE(proof.distance, dx + dy - slack);
      EXPECT_LE(proof.value.lower, value + slack * (1 + Real(game.tau)));
      EXPECT_GE(proof.value.upper, value - slack * (1 + Real(game.tau)));
      EXPECT_TRUE(noise > 0 || proof.distance < 1e-12);
    }
  }
}

// Without payoffs x* is uniform on two actions, and x = (1 + d, 1 - d) / 2 has the gap
// tau KL(x, x*) of order d^2: Pinsker's inequality is attained, a constant 1 % smaller would fail.
TEST(GameProof, DistanceIsAttainedWithoutPayoffs) {
  const Game game{.rows = 2, .cols = 1, .payoff = {0, 0}, .tau = 3};
  const double d = 1e-3;
  const GameProof proof = prove_game(game, {0.5 + d / 2, 0.5 - d / 2}, {1});
  EXPECT_GE(proof.distance_x, d);
  EXPECT_LE(proof.distance_x, 1.001 * d);
  const Game square{.rows = 2, .cols = 2, .payoff = {0, 0, 0, 0}, .tau = 3};
  const std::vector<double> off{0.5 + d / 2, 0.5 - d / 2};
  EXPECT_GE(prove_game(square, off, off).distance, 2 * d);
  EXPECT_LE(prove_game(square, off, off).distance, 2.001 * d);
}

// The gap from its closed forms, far below their rounding errors.
TEST(GameProof, SmallGapsAreResolved) {
  const Game game{.rows = 2, .cols = 2, .payoff = {1, -1, -1, 1}, .tau = 1};
  for (const double d : {1e-3, 1e-6, 1e-9}) {
    // KL(x, u) for x = (1 + d, 1 - d)/2 is d^2/2, and the response to x has logits +-d.
    const GameProof proof = prove_game(game, {0.5 + d / 2, 0.5 - d / 2}, {0.5, 0.5});
    EXPECT_NEAR(proof.gap.upper / (d * d), 1, 1e-5);
    EXPECT_NEAR(proof.gap.lower / (d * d), 1, 1e-5);
  }
}

TEST(GameProof, OffsetsDoNotMatter) {
  Random random(3);
  const Game game = random_game(random, 40, 30, 0.3, 3);
  const Equilibrium found = solve_game(game);
  EXPECT_TRUE(found.converged);
  EXPECT_LT(prove_game(game, found.x, found.y).distance, 1e-11);
}

TEST(GameProof, ExtremeNumbers) {
  const Game huge{.rows = 2, .cols = 2, .payoff = {1e308, -1e308, -1e308, 1e308}, .tau = 1e305};
  const Equilibrium found = solve_game(huge);
  EXPECT_NEAR(found.x[0], 0.5, 1e-9);
  EXPECT_FALSE(std::isnan(prove_game(huge, found.x, found.y).gap.upper));
  const Game tiny{.rows = 2, .cols = 2, .payoff = {5e-324, 0, 0, 0}, .tau = 1e300};
  EXPECT_LT(prove_game(tiny, {0.5, 0.5}, {0.5, 0.5}).distance, 1e-14);
  const Game small_tau{.rows = 2, .cols = 2, .payoff = {1, -1, -1, 1}, .tau = 1e-300};
  EXPECT_LE(prove_game(small_tau, {0.5, 0.5}, {0.5, 0.5}).gap.upper, 1e-15);
  EXPECT_LE(prove_game(small_tau, {1, 0}, {0, 1}).gap.upper, 2.0000001);
}

TEST(GameProof, RefusesWhatIsNoStrategy) {
  const Game game{.rows = 2, .cols = 1, .payoff = {0, 1}, .tau = 1};
  EXPECT_THROW(static_cast<void>(prove_game(game, {0.5, -0.5}, {1})), Error);
  EXPECT_THROW(static_cast<void>(prove_game(game, {0, 0}, {1})), Error);
  EXPECT_THROW(static_cast<void>(prove_game(game, {0.5, NAN}, {1})), Error);
  EXPECT_THROW(static_cast<void>(prove_game(game, {1}, {1})), Error);
}

}  // namespace
}  // namespace lipscope

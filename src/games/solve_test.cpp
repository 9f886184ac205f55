// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "games/reference_for_test.h"
#include "lipscope/error.h"
#include "lipscope/game.h"

namespace lipscope {
namespace {

using namespace game_reference;

Tensor matrix(Shape shape, std::vector<double> entries) {
  return {ElementType::kFloat64, std::move(shape), std::move(entries)};
}

// Rock-paper-scissors where two pairings pay 3 and one pays 1, scaled to [0, 1]; equilibria as
// published with the magnetic mirror descent experiments.
TEST(GameSolver, PerturbedRockPaperScissors) {
  const double b[] = {0, -3, 3, 3, 0, -1, -3, 1, 0};
  std::vector<double> a;
  for (const double entry : b) a.push_back(-(entry + 3) / 6);
  const std::pair<double, std::vector<double>> published[] = {
      {0.5, {.29813319, .41382045, .28804635}},
      {0.2, {.22364492, .47798817, .29836691}},
      {0.1, {.17347803, .48630324, .34021873}},
      {0.05, {.1517447, .46794775, .38030755}}};
  for (const auto& [tau, expected] : published) {
    const Equilibrium found = solve_game(make_game(matrix({3, 3}, a), tau));
    EXPECT_TRUE(found.converged);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(found.x[i], expected[i], 5.1e-9) << tau;
      EXPECT_NEAR(found.y[i], expected[i], 5.1e-9) << tau;
    }
  }
}

// Payoffs u_i + v_j decouple: x = softmax(-u / tau), y = softmax(v / tau).
TEST(GameSolver, SeparablePayoffs) {
  const double u[] = {0.3, -1.2, 0.8}, v[] = {2, 0.5, -0.25, 1};
  Game game{.rows = 3, .cols = 4, .payoff = {}, .tau = 0.7};
  for (const double a : u) {
    for (const double b : v) game.payoff.push_back(a + b);
  }
  const Equilibrium found = solve_game(game);
  const Vector x = softmax({-u[0] / 0.7L, -u[1] / 0.7L, -u[2] / 0.7L});
  const Vector y = softmax({v[0] / 0.7L, v[1] / 0.7L, v[2] / 0.7L, v[3] / 0.7L});
  EXPECT_LT(distance(found.x, x), 1e-14);
  EXPECT_LT(distance(found.y, y), 1e-14);
}

// 2 x 2: with s = ln(x_0 / x_1) and t = ln(y_0 / y_1), tau s = -(c y_0 + d), tau t = c x_0 + e.
// c = a + d - b - c of the matrix; c = 0 is solved by hand, c != 0 checked in these equations.
TEST(GameSolver, TwoByTwo) {
  Random random(3);
  for (int trial = 0; trial < 300; ++trial) {
    const double tau = log_uniform(random, 1e-2, 1e2);
    const Game game = random_game(random, 2, 2, tau, 2);
    const auto& a = game.payoff;
    const Equilibrium found = solve_game(game);
    const double s = -(a[0] - a[2] - a[1] + a[3]) * found.y[0] - (a[1] - a[3]);
    const double t = (a[0] - a[1] - a[2] + a[3]) * found.x[0] + (a[2] - a[3]);
    EXPECT_NEAR(found.x[0], 1 / (1 + std::exp(-s / tau)), 1e-12) << tau;
    EXPECT_NEAR(found.y[0], 1 / (1 + std::exp(-t / tau)), 1e-12) << tau;
  }
  const Game pennies{.rows = 2, .cols = 2, .payoff = {1, -1, -1, 1}, .tau = 0.01};
  EXPECT_NEAR(solve_game(pennies).x[0], 0.5, 1e-14);
  EXPECT_NEAR(solve_game(pennies).y[0], 0.5, 1e-14);
}

// Any interior point is the equilibrium of some game: A = R + u 1' + 1 v' with
// u = -tau ln x - Ry and v = tau ln y - R'x.
TEST(GameSolver, PlantedEquilibria) {
  Random random(4);
  for (int trial = 0; trial < 60; ++trial) {
    const double tau = log_uniform(random, 1e-2, 10);
    Game game = random_game(random, integer(random, 1, 60), integer(random, 1, 60), tau, 2);
    Vector x(static_cast<std::size_t>(game.rows)), y(static_cast<std::size_t>(game.cols));
    std::normal_distribution<double> normal;
    for (Real& value : x) value = Real(normal(random));
    for (Real& value : y) value = Real(normal(random));
    x = softmax(x), y = softmax(y);
    const Vector ry = row_payoffs(game, y), rx = col_payoffs(game, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t j = 0; j < y.size(); ++j) {
        game.payoff[i * y.size() + j] =
            static_cast<double>(Real(game.payoff[i * y.size() + j]) - Real(tau) * std::log(x[i]) -
                                ry[i] + Real(tau) * std::log(y[j]) - rx[j]);
      }
    }
    const Equilibrium found = solve_game(game);
    EXPECT_TRUE(found.converged);
    EXPECT_LT(distance(found.x, x), 1e-13 * (1 + 10 / tau)) << found.method;
    EXPECT_LT(distance(found.y, y), 1e-13 * (1 + 10 / tau)) << found.method;
  }
}

TEST(GameSolver, AgreesWithTheSlowTwin) {
  Random random(5);
  for (int trial = 0; trial < 150; ++trial) {
    const Game game = random_game(random, integer(random, 1, 9), integer(random, 1, 9),
                                  log_uniform(random, 0.1, 100), trial % 3);
    const Equilibrium found = solve_game(game);
    const Point truth = equilibrium(game);
    EXPECT_TRUE(found.converged);
    EXPECT_LT(distance(found.x, truth.x) + distance(found.y, truth.y), 1e-12) << found.method;
  }
}

TEST(GameSolver, NeverDivergesFromLargeToSmallTau) {
  Random random(6);
  for (int trial = 0; trial < 500; ++trial) {
    const Game game = random_game(random, integer(random, 2, 200), integer(random, 2, 200),
                                  log_uniform(random, 1e-3, 1e3), trial % 3);
    const Equilibrium found = solve_game(game);
    const GameProof proof = prove_game(game, found.x, found.y);
    EXPECT_TRUE(found.converged);
    EXPECT_LT(proof.gap.upper, 1e-15) << game.rows << "x" << game.cols << " tau " << game.tau;
  }
}

// Below what can be followed the pair is still close to a Nash equilibrium.
TEST(GameSolver, SmallTauGivesANashEquilibrium) {
  Random random(7);
  for (int trial = 0; trial < 60; ++trial) {
    const double tau = log_uniform(random, 1e-300, 1e-6);
    const Game game =
        random_game(random, integer(random, 2, 60), integer(random, 2, 60), tau, trial % 3);
    const Equilibrium found = solve_game(game);
    EXPECT_LT(prove_game(game, found.x, found.y).exploitability.upper, 1e-3) << tau;
  }
}

TEST(GameSolver, StopsWhenAsked) {
  Random random(8);
  const Game game = random_game(random, 30, 30, 1e-3, 2);
  int asked = 0;
  const Equilibrium found = solve_game(game, {.should_stop = [&] { return ++asked > 12; }});
  EXPECT_FALSE(found.converged);
  EXPECT_LE(found.iterations, 13);
  EXPECT_TRUE(std::isfinite(prove_game(game, found.x, found.y).gap.upper));
}

void expect_error(const Tensor& payoff, double tau, ErrorCode code, const std::string& word) {
  try {
    static_cast<void>(make_game(payoff, tau));
    ADD_FAILURE() << word;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

TEST(Game, BadInput) {
  const Tensor good = matrix({1, 2}, {1, 2});
  for (const double tau : {0.0, -1.0, double(NAN), double(INFINITY)})
    expect_error(good, tau, ErrorCode::kUsage, "tau");
  expect_error(matrix({1, 1}, {1e300}), 1e-10, ErrorCode::kUsage, "too small");
  expect_error(matrix({2, 3}, {1, 2, 3, 4, NAN, 6}), 1, ErrorCode::kBadFile, "row 1, column 1");
  expect_error(matrix({2, 3}, {1, 2, INFINITY, 4, 5, 6}), 1, ErrorCode::kBadFile,
               "row 0, column 2");
  expect_error(matrix({0, 3}, {}), 1, ErrorCode::kShape, "empty");
  expect_error(matrix({}, {1}), 1, ErrorCode::kShape, "two dimensions");
  expect_error(matrix({1, 1, 1}, {1}), 1, ErrorCode::kShape, "two dimensions");
  expect_error(Tensor::integers({1, 1}, {Index(1) << 60}), 1, ErrorCode::kUnsupported, "2^53");
  const Game row = make_game(matrix({3}, {1, 2, 3}), 1);
  EXPECT_EQ(row.rows, 1);
  EXPECT_EQ(row.cols, 3);
}

}  // namespace
}  // namespace lipscope

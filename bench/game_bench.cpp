// SPDX-License-Identifier: Apache-2.0
// Seconds to an equilibrium. Each game counts only if its duality gap is proved to be small.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>

#include "lipscope/game.h"

namespace lipscope {
namespace {

using Random = std::mt19937_64;

const char* const kKinds[] = {"uniform on [0, 1]", "+-1", "Gaussian"};

Game random_game(Random& random, Index rows, Index cols, double tau, int kind) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(0, 1);
  Game game{.rows = rows, .cols = cols, .payoff = {}, .tau = tau};
  for (Index i = 0; i < rows * cols; ++i) {
    const double u = uniform(random);
    game.payoff.push_back(kind == 0 ? u : kind == 1 ? std::copysign(1, u - 0.5) : normal(random));
  }
  return game;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double check(const Game& game, const Equilibrium& found, double limit) {
  const double gap = prove_game(game, found.x, found.y).gap.upper;
  if (gap <= limit) return gap;
  fmt::print("{} x {}, tau {}: gap {} above {}\n", game.rows, game.cols, game.tau, gap, limit);
  std::exit(1);
}

void large_games() {
  Random random(1);
  for (int kind = 0; kind < 3; ++kind) {
    for (const double tau : {0.05, 0.001}) {
      const Game game = random_game(random, 1000, 1000, tau, kind);
      double best = HUGE_VAL;
      Equilibrium found;
      for (int run = 0; run < 3; ++run) {
        const auto start = std::chrono::steady_clock::now();
        found = solve_game(game);
        best = std::min(best, seconds_since(start));
      }
      const double gap = check(game, found, 1e-10);
      auto start = std::chrono::steady_clock::now();
      static_cast<void>(prove_game(game, found.x, found.y));
      const double proof = seconds_since(start);
      start = std::chrono::steady_clock::now();
      static_cast<void>(contraction_of(game));
      fmt::print(
          "1000 x 1000 {:<18} tau {:<6} {:.3f} s, {} iterations, gap <= {:.1e}; "
          "proof {:.3f} s, contraction {:.3f} s\n",
          kKinds[kind], tau, best, found.iterations, gap, proof, seconds_since(start));
    }
  }
}

void many_games() {
  Random random(2);
  std::uniform_real_distribution<double> exponent(-3, 3);
  std::uniform_int_distribution<Index> size(2, 200);
  double seconds = 0, worst = 0;
  Index most = 0;
  for (int trial = 0; trial < 500; ++trial) {
    const Game game =
        random_game(random, size(random), size(random), std::pow(10, exponent(random)), trial % 3);
    const auto start = std::chrono::steady_clock::now();
    const Equilibrium found = solve_game(game);
    seconds += seconds_since(start);
    worst = std::max(worst, check(game, found, 1e-10));
    most = std::max(most, found.iterations);
  }
  fmt::print(
      "500 games of size 2..200, tau 1e-3..1e3: {:.2f} s, largest gap {:.1e}, at most {} "
      "iterations\n",
      seconds, worst, most);
}

}  // namespace
}  // namespace lipscope

int main() {
  lipscope::large_games();
  lipscope::many_games();
}

// SPDX-License-Identifier: Apache-2.0
// The double-softmax iteration step by step, against the bounds of [games-5] and [games-7].
#include <cmath>

#include "games/centred.h"
#include "games/point.h"

namespace lipscope {
namespace {

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::fabs(a[i] - b[i]);
  return sum;
}

}  // namespace

GameTrace trace_game(const Game& game, const Equilibrium& equilibrium, double factor,
                     Index max_steps, const GameLimits& limits) {
  GameTrace trace{.damping = 1, .rate = factor, .contracts = factor < 1, .steps = {}};
  if (!trace.contracts) {
    // The largest damping for which [games-7] holds.
    trace.damping = 1 / (1 + factor);
    trace.rate = 1 - trace.damping;
  }
  Board board{.rows = game.rows, .cols = game.cols, .entries = centre(game).entries};
  const double q = trace.rate;
  Point point = evaluate(board, game.tau, std::vector<double>(equilibrium.y.size()));
  const double first_gap = point.divergence;
  double first_step = 0, power = 1;
  std::vector<double> before;
  for (Index k = 0; k <= max_steps; ++k) {
    const double step = k == 0 ? 0 : distance(point.y, before);
    if (k == 1) first_step = step;
    TraceStep row{.iteration = k, .error = distance(point.y, equilibrium.y)};
    if (trace.contracts) {
      row.a_priori = k == 0 ? 2 : power / (1 - q) * first_step;
      row.a_posteriori = k == 0 ? 2 : q / (1 - q) * step;
    } else {
      row.a_priori = std::sqrt(2 * power * first_gap);
      row.a_posteriori = std::sqrt(2 * point.divergence);
    }
    trace.steps.push_back(row);
    if (limits.should_stop && limits.should_stop()) break;
    // Below the rounding errors of the iterates nothing can be compared.
    if (k > 0 && (step <= 1e-15 || row.a_posteriori <= 1e-14)) break;
    before = point.y;
    point = respond(board, game.tau, trace.damping, point);
    power *= q;
  }
  return trace;
}

}  // namespace lipscope

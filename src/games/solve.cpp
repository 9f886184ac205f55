// SPDX-License-Identifier: Apache-2.0
// From the cheapest way to the most robust one: the double-softmax iteration, the same damped,
// Newton's method along a falling tau.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/parallel.h"
#include "games/centred.h"
#include "games/newton.h"
#include "games/point.h"

namespace lipscope {
namespace {

constexpr Index kFixedPointSteps = 400, kNewtonSteps = 40, kMostSteps = 2000;
// Below this, in units of the largest payoff, logits cannot be resolved in double precision.
constexpr double kSmallestTau = 1e-13;
// A damped step then shrinks the error by a third at least.
constexpr double kLargestStretch = 4;

// Residuals above the square of this are never an equilibrium.
constexpr double kLoosest = 1e-3;
// Decrement below which a full Newton step leaves a small error.
constexpr double kQuadratic = 0.05;

class Solver {
 public:
  Solver(const Board& board, double tau, const GameLimits& limits)
      : board_(board),
        tau_(tau),
        limits_(limits),
        // Rounding errors of a logit: a few units of one payoff over tau.
        tolerance_(std::min(1e-15 * (4 + 2 / tau), kLoosest)) {}

  Equilibrium solve() {
    best_ = start();
    std::string_view method = "double-softmax";
    bool done = fixed_point(1);
    if (!done && stretch_ < kLargestStretch && !stopped()) {
      method = "damped double-softmax";
      done = fixed_point(2 / (2 + stretch_));
    }
    if (!done && !stopped()) {
      method = "damped Newton with tau-continuation";
      done = continuation();
    }
    return {.x = std::move(best_.x),
            .y = std::move(best_.y),
            .iterations = iterations_,
            .method = method,
            .converged = done};
  }

 private:
  [[nodiscard]] bool stopped() const { return limits_.should_stop && limits_.should_stop(); }
  [[nodiscard]] Point start() const {
    return evaluate(board_, tau_, std::vector<double>(static_cast<std::size_t>(board_.cols)));
  }
  [[nodiscard]] bool settled(const Point& point) const {
    return point.residual <= tolerance_ * tolerance_;
  }
  // Large against rounding errors, small against anything one would print.
  [[nodiscard]] double fine() const {
    return std::clamp(1e8 * tolerance_ * tolerance_, 1e-18, kLoosest * kLoosest);
  }

  // y <- (1 - damping) y + damping T(y) from the uniform y. Gives up when four steps do not halve
  // the residual, and leaves in stretch_ how much T stretches the last difference.
  bool fixed_point(double damping) {
    Point point = start();
    double before = point.residual;
    for (Index k = 1; k <= kFixedPointSteps && !stopped(); ++k) {
      if (settled(point)) return best_ = std::move(point), true;
      Point next = respond(board_, tau_, damping, point);
      ++iterations_;
      if (damping == 1) stretch_ = std::sqrt(next.residual / point.residual);
      point = std::move(next);
      if (k % 4 != 0) continue;
      const bool noise = point.residual <= fine();
      if (point.residual > before / 4) return noise ? (best_ = std::move(point), true) : false;
      before = point.residual;
    }
    if (stopped()) best_ = std::move(point);
    return false;
  }

  enum class Move { kNone, kDamped, kFull };

  // One Newton step with step-size control; kFull: the step was inside the region of quadratic
  // convergence, kNone: no progress possible.
  Move improve(double tau, Point& point) {
    const auto step = newton_step(board_, tau, point);
    if (!step) return Move::kNone;
    ++iterations_;
    // Rounding of the potential hides a descent below this.
    const double noise = 1e-15 * (1 + std::fabs(point.potential));
    for (double t = 1; t > 1e-9; t /= 2) {
      std::vector<double> logits = point.w;
      for (std::size_t j = 0; j < logits.size(); ++j) logits[j] += t * step->direction[j];
      Point next = evaluate(board_, tau, std::move(logits));
      const bool lower = next.potential <= point.potential - 1e-4 * t * step->decrement;
      const bool closer = step->decrement < 1e4 * noise && next.residual < 0.9 * point.residual;
      if (!lower && !closer) continue;
      const bool progress = step->decrement > 1e4 * noise || next.residual < 0.9 * point.residual;
      if (progress || next.residual < point.residual) point = std::move(next);
      if (!progress) return Move::kNone;
      return t == 1 && step->decrement < kQuadratic ? Move::kFull : Move::kDamped;
    }
    return Move::kNone;
  }

  // Newton's method at one tau: until a full step when `coarse`, else until nothing improves.
  bool stage(double tau, bool coarse, Point& point, Index& steps) {
    for (steps = 0; steps < kNewtonSteps && !stopped(); ++steps) {
      if (point.residual <= tolerance_ * tolerance_) return true;
      const Move move = improve(tau, point);
      if (move == Move::kFull && coarse && point.residual < 1) return true;
      if (move == Move::kNone) return point.residual <= fine();
    }
    return false;
  }

  // The old equilibrium as a start for another tau: the same strategy or the same payoffs,
  // whichever is the better strategy there.
  [[nodiscard]] Point carry(const Point& point, double to) const {
    Point same = evaluate(board_, to, point.w);
    std::vector<double> logits = point.col;
    for (double& value : logits) value /= to;
    Point scaled = evaluate(board_, to, std::move(logits));
    return scaled.potential < same.potential ? scaled : same;
  }

  // Follows the equilibrium from a large tau down. A stage that fails is tried again from the last
  // good one with a smaller reduction.
  bool continuation() {
    const double last = std::max(tau_, kSmallestTau);
    double good_tau = std::max(last, 0.5), ratio = 0.4;
    Index steps = 0;
    Point good = evaluate(board_, good_tau, start().w);
    bool done = stage(good_tau, good_tau > last, good, steps);
    while (good_tau > last && ratio < 0.95 && iterations_ < kMostSteps && !stopped()) {
      const double tau = std::max(last, good_tau * ratio);
      Point point = carry(good, tau);
      done = stage(tau, tau > last, point, steps);
      if (done) {
        good = std::move(point);
        good_tau = tau;
        if (steps <= 2) ratio = std::max(0.1, ratio * ratio);
      }
      if (!done || steps > 5) ratio = std::sqrt(ratio);
    }
    best_ = std::move(good);
    return done && good_tau == tau_;
  }

  const Board& board_;
  double tau_;
  const GameLimits& limits_;
  double tolerance_;
  Point best_;
  Index iterations_ = 0;
  double stretch_ = kLargestStretch;
};

}  // namespace

Equilibrium solve_game(const Game& game, const GameLimits& limits) {
  Centred centred = centre(game);
  // A player with more actions is put on the rows: the game -A' with the players exchanged.
  const bool exchanged = game.rows < game.cols;
  const double unit = centred.largest > 0 ? centred.largest : 1;
  for (double& entry : centred.entries) entry /= exchanged ? -unit : unit;
  Board board{.rows = game.rows, .cols = game.cols, .entries = {}};
  if (exchanged) {
    board.entries = transposed(game.rows, game.cols, centred.entries);
    std::swap(board.rows, board.cols);
  } else {
    board.entries = std::move(centred.entries);
  }
  Equilibrium found = Solver(board, game.tau / unit, limits).solve();
  if (exchanged) std::swap(found.x, found.y);
  return found;
}

}  // namespace lipscope

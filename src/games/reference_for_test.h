// SPDX-License-Identifier: Apache-2.0
// The slow, obvious twin: long double, the iteration that converges for every tau [games-7].
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "lipscope/game.h"

namespace lipscope::game_reference {

using Real = long double;
using Vector = std::vector<Real>;
using Random = std::mt19937_64;

inline Real log_sum_exp(const Vector& z) {
  const Real top = *std::max_element(z.begin(), z.end());
  Real sum = 0;
  for (const Real value : z) sum += std::exp(value - top);
  return top + std::log(sum);
}

inline Vector softmax(Vector z) {
  const Real total = log_sum_exp(z);
  for (Real& value : z) value = std::exp(value - total);
  return z;
}

inline Vector row_payoffs(const Game& game, const Vector& y) {  // Ay
  Vector out(static_cast<std::size_t>(game.rows));
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (std::size_t j = 0; j < y.size(); ++j) out[i] += Real(game.payoff[i * y.size() + j]) * y[j];
  }
  return out;
}

inline Vector col_payoffs(const Game& game, const Vector& x) {  // A'x
  Vector out(static_cast<std::size_t>(game.cols));
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < out.size(); ++j)
      out[j] += Real(game.payoff[i * out.size() + j]) * x[i];
  }
  return out;
}

inline Vector divided(Vector z, Real by) {
  for (Real& value : z) value /= by;
  return z;
}

inline Vector row_response(const Game& game, const Vector& y) {
  return softmax(divided(row_payoffs(game, y), -Real(game.tau)));
}
inline Vector col_response(const Game& game, const Vector& x) {
  return softmax(divided(col_payoffs(game, x), Real(game.tau)));
}

inline Vector normalised(const std::vector<double>& weights) {
  Vector out(weights.begin(), weights.end());
  Real total = 0;
  for (const Real value : out) total += value;
  return divided(std::move(out), total);
}

inline Real negative_entropy(const Vector& x) {
  Real sum = 0;
  for (const Real value : x) sum += value > 0 ? value * std::log(value) : 0;
  return sum;
}

inline Real upper_value(const Game& game, const Vector& x) {
  return Real(game.tau) *
         (log_sum_exp(divided(col_payoffs(game, x), Real(game.tau))) + negative_entropy(x));
}
inline Real lower_value(const Game& game, const Vector& y) {
  return -Real(game.tau) *
         (log_sum_exp(divided(row_payoffs(game, y), -Real(game.tau))) + negative_entropy(y));
}

template <class A, class B>
Real distance(const A& a, const B& b) {
  Real sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::fabs(Real(a[i]) - Real(b[i]));
  return sum;
}

// max |a_ij - a_kj - a_il + a_kl| by four loops.
inline Real spread(const Game& game) {
  const auto at = [&](Index i, Index j) {
    return Real(game.payoff[static_cast<std::size_t>(i * game.cols + j)]);
  };
  Real best = 0;
  for (Index i = 0; i < game.rows; ++i) {
    for (Index k = 0; k < i; ++k) {
      for (Index j = 0; j < game.cols; ++j) {
        for (Index l = 0; l < j; ++l)
          best = std::max(best, std::fabs(at(i, j) - at(k, j) - at(i, l) + at(k, l)));
      }
    }
  }
  return best;
}

struct Point {
  Vector x, y;
};

// The error falls by the factor 1 - 1 / (1 + (D / 4 tau)^2) per step at worst.
inline Point equilibrium(const Game& game) {
  const Real root = spread(game) / (4 * Real(game.tau)), damping = 1 / (1 + root * root);
  Vector y(static_cast<std::size_t>(game.cols), Real(1) / Real(game.cols));
  for (int step = 0; step < 1000000; ++step) {
    const Vector next = col_response(game, row_response(game, y));
    Real moved = 0;
    for (std::size_t j = 0; j < y.size(); ++j) {
      moved += std::fabs(next[j] - y[j]);
      y[j] += damping * (next[j] - y[j]);
    }
    if (moved < 1e-17L) break;
  }
  return {row_response(game, y), y};
}

// Kinds: uniform on [0, 1], +-1, Gaussian, Gaussian plus a large constant.
inline Game random_game(Random& random, Index rows, Index cols, double tau, int kind) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(0, 1);
  Game game{.rows = rows, .cols = cols, .payoff = {}, .tau = tau};
  for (Index i = 0; i < rows * cols; ++i) {
    const double u = uniform(random), g = normal(random);
    game.payoff.push_back(kind == 0   ? u
                          : kind == 1 ? (u < 0.5 ? -1 : 1)
                                      : g + (kind == 3 ? 1e6 : 0));
  }
  return game;
}

inline Index integer(Random& random, Index a, Index b) {
  return std::uniform_int_distribution<Index>(a, b)(random);
}
inline double log_uniform(Random& random, double a, double b) {
  return a * std::pow(b / a, std::uniform_real_distribution<double>(0, 1)(random));
}

}  // namespace lipscope::game_reference

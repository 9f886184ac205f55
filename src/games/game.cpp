// SPDX-License-Identifier: Apache-2.0
#include "lipscope/game.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lipscope/error.h"

namespace lipscope {

namespace {

// Larger integers are not all doubles.
constexpr double kLargestInteger = 0x1p53;

void check_tau(double tau) {
  if (tau > 0 && std::isfinite(tau)) return;
  throw Error(ErrorCode::kUsage, fmt::format("tau is {}; it must be positive and finite", tau));
}

void check_shape(const Tensor& payoff, std::string_view name) {
  const Shape& shape = payoff.shape();
  if (shape.empty() || shape.size() > 2) {
    throw Error(
        ErrorCode::kShape,
        fmt::format("{}: a payoff matrix has two dimensions (one: a single row), this array "
                    "has {}",
                    name, shape.size()));
  }
  if (payoff.size() > 0) return;
  throw Error(ErrorCode::kShape,
              fmt::format("{}: the payoff matrix is empty, shape {}", name, to_string(shape)));
}

}  // namespace

Game make_game(const Tensor& payoff, double tau, std::string_view name) {
  check_tau(tau);
  check_shape(payoff, name);
  const Shape& shape = payoff.shape();
  Game game{.rows = shape.size() == 2 ? shape[0] : 1, .cols = shape.back(), .payoff = {}};
  game.tau = tau;
  game.payoff.reserve(static_cast<std::size_t>(payoff.size()));
  const auto fail = [&](ErrorCode code, Index i, std::string_view what) {
    throw Error(code, fmt::format("{}: row {}, column {} {} (counting from 0)", name, i / game.cols,
                                  i % game.cols, what));
  };
  double largest = 0;
  for (Index i = 0; i < payoff.size(); ++i) {
    const double entry = payoff.at(i);
    if (std::isnan(entry)) fail(ErrorCode::kBadFile, i, "is not a number");
    if (std::isinf(entry)) fail(ErrorCode::kBadFile, i, "is infinite");
    if (payoff.storage() == Storage::kInt64 && std::fabs(entry) > kLargestInteger)
      fail(ErrorCode::kUnsupported, i, "is an integer beyond 2^53");
    largest = std::max(largest, std::fabs(entry));
    game.payoff.push_back(entry);
  }
  if (std::isfinite(largest / tau * 4)) return game;
  throw Error(ErrorCode::kUsage,
              fmt::format("tau = {} is too small for payoffs of size {}: their quotient overflows",
                          tau, largest));
}

}  // namespace lipscope

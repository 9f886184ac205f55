// SPDX-License-Identifier: Apache-2.0
// The law of the largest of many draws of a bounded quantity, and how it is fitted [estimates-3].
#pragma once

#include <optional>
#include <random>
#include <span>

namespace lipscope {

// F(y) = exp(-((end - y) / scale)^shape) for y < end, and 1 from there on.
struct ReverseWeibull {
  double end = 0, scale = 1, shape = 1;

  [[nodiscard]] double cumulative(double y) const;
  [[nodiscard]] double draw(std::mt19937_64& rng) const;
};

// Maximum likelihood with shape >= 1: below 1 the likelihood has no bound as the end point falls on
// the largest maximum. When the constraint binds, the end point is that maximum and the others
// decide scale and shape. Nothing when the best end point runs away, or for fewer than three
// different numbers.
[[nodiscard]] std::optional<ReverseWeibull> fit_reverse_weibull(std::span<const double> maxima);

// Kolmogorov-Smirnov: the largest distance between F and the shares of the sample.
[[nodiscard]] double largest_deviation(std::span<const double> maxima, const ReverseWeibull& law);

// How often samples of a fitted law, fitted in turn, deviate as much as these maxima from it. The
// textbook distribution does not apply: it is that of a law that was known before the sample.
[[nodiscard]] double fit_p_value(std::span<const double> maxima, const ReverseWeibull& law,
                                 std::mt19937_64& rng);

}  // namespace lipscope

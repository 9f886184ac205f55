// SPDX-License-Identifier: Apache-2.0
#include "estimate/reverse_weibull.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace lipscope {
namespace {

// With some hundred maxima, larger shapes cannot be told from a law without an end.
constexpr double kLargestShape = 30;
constexpr double kSmallestShape = 0.05;

// A Weibull law of distances to the end point: for a given end the scale has a closed form and the
// likelihood is concave in the shape.
class Distances {
 public:
  explicit Distances(std::vector<double> z) : logs_(std::move(z)) {
    for (double& e : logs_) e = std::log(e);
    for (const double e : logs_) mean_ += e / static_cast<double>(logs_.size());
    largest_ = *std::ranges::max_element(logs_);
  }

  [[nodiscard]] double best_shape(double low, double high) const {
    if (slope(low).value <= 0) return low;
    if (slope(high).value >= 0) return high;
    double shape = std::sqrt(low * high);
    for (int i = 0; i < 100 && high - low > 1e-12 * high; ++i) {
      const auto [value, derivative] = slope(shape);
      (value > 0 ? low : high) = shape;
      const double newton = shape - value / derivative;
      const double next = newton > low && newton < high ? newton : 0.5 * (low + high);
      if (std::abs(next - shape) <= 1e-10 * shape) return next;
      shape = next;
    }
    return shape;
  }

  [[nodiscard]] double scale(double shape) const { return std::exp(log_mean(shape) / shape); }

  // Per distance, at the best scale.
  [[nodiscard]] double likelihood(double shape) const {
    return std::log(shape) - log_mean(shape) + (shape - 1) * mean_ - 1;
  }

 private:
  struct Slope {
    double value, derivative;
  };
  // Derivative of the likelihood in the shape.
  [[nodiscard]] Slope slope(double shape) const {
    double sum = 0, first = 0, second = 0;
    for (const double e : logs_) {
      const double weight = std::exp(shape * (e - largest_)), away = e - largest_;
      sum += weight;
      first += weight * away;
      second += weight * away * away;
    }
    const double average = first / sum;
    return {1 / shape + mean_ - largest_ - average,
            -1 / (shape * shape) - (second / sum - average * average)};
  }

  // log of the mean of z^shape.
  [[nodiscard]] double log_mean(double shape) const {
    double sum = 0;
    for (const double e : logs_) sum += std::exp(shape * (e - largest_));
    return shape * largest_ + std::log(sum / static_cast<double>(logs_.size()));
  }

  std::vector<double> logs_;
  double mean_ = 0, largest_ = 0;
};

struct Candidate {
  double ahead = 0;  // of the end point before the largest maximum, in units of the spread
  double shape = 1, likelihood = 0;
};

// Gaps are distances to the largest maximum, in units of the spread.
Candidate at(const std::vector<double>& gaps, double log_ahead) {
  std::vector<double> z = gaps;
  for (double& e : z) e += std::exp(log_ahead);
  const Distances distances(std::move(z));
  const double shape = distances.best_shape(1, kLargestShape);
  return {std::exp(log_ahead), shape, distances.likelihood(shape)};
}

// The profile likelihood may have several hills: a grid, then golden sections on the best one.
Candidate best_ahead(const std::vector<double>& gaps) {
  constexpr int kGrid = 36;
  constexpr double kGolden = 0.6180339887498949;
  const double low = std::log(1e-6), high = std::log(100.0), step = (high - low) / kGrid;
  Candidate best{.likelihood = -HUGE_VAL};
  double center = low;
  for (int i = 0; i <= kGrid; ++i) {
    const Candidate here = at(gaps, low + i * step);
    if (here.likelihood <= best.likelihood) continue;
    best = here;
    center = low + i * step;
  }
  double left = center - step, right = center + step;
  double x = right - kGolden * (right - left), y = left + kGolden * (right - left);
  Candidate at_x = at(gaps, x), at_y = at(gaps, y);
  while (right - left > 1e-5) {
    if (at_x.likelihood > at_y.likelihood) {
      right = std::exchange(y, x);
      at_y = at_x;
      at_x = at(gaps, x = right - kGolden * (right - left));
    } else {
      left = std::exchange(x, y);
      at_x = at_y;
      at_y = at(gaps, y = left + kGolden * (right - left));
    }
  }
  for (const Candidate& found : {at_x, at_y}) {
    if (found.likelihood > best.likelihood) best = found;
  }
  return best;
}

}  // namespace

double ReverseWeibull::cumulative(double y) const {
  return y < end ? std::exp(-std::pow((end - y) / scale, shape)) : 1;
}

double ReverseWeibull::draw(std::mt19937_64& rng) const {
  return end - scale * std::pow(std::exponential_distribution<double>()(rng), 1 / shape);
}

std::optional<ReverseWeibull> fit_reverse_weibull(std::span<const double> maxima) {
  if (maxima.size() < 3) return std::nullopt;
  const auto [low, high] = std::ranges::minmax(maxima);
  const double spread = high - low;
  if (!(spread > 0) || !std::isfinite(spread)) return std::nullopt;
  std::vector<double> gaps, others;
  double mean = 0;
  for (const double e : maxima) {
    gaps.push_back((high - e) / spread);
    mean += gaps.back() / static_cast<double>(maxima.size());
    if (gaps.back() > 0) others.push_back(gaps.back());
  }
  if (others.size() < 2 || std::ranges::min(others) == std::ranges::max(others))
    return std::nullopt;
  const Candidate best = best_ahead(gaps);
  const double exponential = -std::log(mean) - 1;  // shape 1, the end point at the largest maximum
  if (best.shape > 1 && best.likelihood > exponential) {
    if (best.shape >= kLargestShape) return std::nullopt;
    for (double& e : gaps) e += best.ahead;
    const double scale = Distances(std::move(gaps)).scale(best.shape);
    return ReverseWeibull{high + best.ahead * spread, scale * spread, best.shape};
  }
  const Distances distances(std::move(others));
  const double shape = distances.best_shape(kSmallestShape, 1);
  return ReverseWeibull{high, distances.scale(shape) * spread, shape};
}

double largest_deviation(std::span<const double> maxima, const ReverseWeibull& law) {
  std::vector<double> sorted(maxima.begin(), maxima.end());
  std::ranges::sort(sorted);
  const auto count = static_cast<double>(sorted.size());
  double largest = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double expected = law.cumulative(sorted[i]), before = static_cast<double>(i) / count;
    largest = std::max({largest, expected - before, before + 1 / count - expected});
  }
  return largest;
}

double fit_p_value(std::span<const double> maxima, const ReverseWeibull& law,
                   std::mt19937_64& rng) {
  constexpr int kSamples = 99;
  const double seen = largest_deviation(maxima, law);
  std::vector<double> sample(maxima.size());
  int fitted = 0, as_much = 0;
  for (int i = 0; i < kSamples; ++i) {
    for (double& e : sample) e = law.draw(rng);
    const auto again = fit_reverse_weibull(sample);
    if (!again) continue;
    ++fitted;
    as_much += largest_deviation(sample, *again) >= seen ? 1 : 0;
  }
  return (1.0 + as_much) / (1.0 + fitted);
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Where the ascent starts from, afresh or from what it has.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "estimate/jacobian_norm.h"
#include "estimate/quotient.h"

namespace lipscope {

inline const Norm kEuclidean(2);

// A segment around x along d that is being improved, `reach` to each side in Euclidean length, and
// the best it has been.
struct Segment {
  std::vector<double> x, d;
  double reach = 1, value = 0;
  TrialLine best;
};

class SegmentMoves {
 public:
  SegmentMoves(std::size_t size, const Norm& norm, const DomainProjection& projection,
               std::uint64_t seed)
      : size_(size), norm_(norm), projection_(projection), rng_(seed) {}

  // Euclidean size of the surroundings of x a search may use.
  [[nodiscard]] double extent(const std::vector<double>& x) const {
    double squares = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      const double width = projection_.high()[i] - projection_.low()[i];
      squares += std::isfinite(width) ? width * width / 12 : x[i] * x[i];
    }
    return squares > 0 ? std::sqrt(squares) : 1;
  }

  // Constants of smooth networks live near the origin, those of piecewise linear ones may need far
  // cells: where the domain has no end, points of size 10^scale.
  [[nodiscard]] Segment fresh(double scale) {
    Segment m{.x = std::vector<double>(size_), .d = std::vector<double>(size_)};
    std::vector<double> g(size_);
    for (double& e : g) e = normal();
    dual_vector(g, norm_.dual(), m.d);
    for (std::size_t i = 0; i < size_; ++i) {
      const double low = projection_.low()[i], high = projection_.high()[i];
      const bool bounded = std::isfinite(high - low);
      m.x[i] = bounded ? low + uniform() * (high - low) : std::pow(10.0, scale) * normal();
    }
    projection_.apply(m.x);
    m.reach = extent(m.x) * std::pow(10.0, -uniform());
    return m;
  }

  [[nodiscard]] Segment fresh() { return fresh(4 * uniform() - 1); }

  [[nodiscard]] Segment child(const std::vector<Segment>& parents) {
    const double rank = uniform() * uniform() * static_cast<double>(parents.size());
    const TrialLine& parent = parents[static_cast<std::size_t>(rank)].best;
    return {.x = parent.x, .d = parent.d, .best = {}};
  }

  void shake(Segment& m, double length) {
    const double share = uniform();
    const double step = length / std::sqrt(1 + share * static_cast<double>(size_));
    for (double& e : m.x) e += uniform() < share ? step * normal() : 0;
  }

  // A segment sees no kink across which d has no part.
  void tilt(Segment& m, double amount) {
    std::vector<double> noise(size_);
    for (double& e : noise) e = normal();
    const double length = amount * vector_norm(m.d, kEuclidean);
    const double step = length / std::max(1e-300, vector_norm(noise, kEuclidean));
    for (std::size_t i = 0; i < size_; ++i) m.d[i] += step * noise[i];
  }

  [[nodiscard]] Segment nudged(const std::vector<Segment>& parents) {
    Segment m = child(parents);
    m.reach = extent(m.x) * std::pow(10.0, -4 * uniform());
    shake(m, m.reach);
    m.reach *= 0.05;
    projection_.apply(m.x);
    return m;
  }

  [[nodiscard]] Segment kicked(const std::vector<Segment>& parents) {
    Segment m = child(parents);
    m.reach = extent(m.x) * std::pow(10.0, -0.3 - 3.2 * uniform());
    const auto any = [&]() -> const std::vector<double>& {
      return parents[rng_() % parents.size()].best.x;
    };
    switch (rng_() % 4) {
      case 0: tilt(m, std::pow(10.0, -uniform())); break;
      case 1: shake(m, m.reach); break;
      case 2: {  // along the line through two others
        const auto &a = any(), &b = any();
        const double step = std::pow(10.0, -2 * uniform());
        for (std::size_t i = 0; i < size_; ++i) m.x[i] += step * (a[i] - b[i]);
        break;
      }
      default: {  // towards the origin or away from it
        const double factor = std::exp(0.5 * normal());
        for (double& e : m.x) e *= factor;
      }
    }
    projection_.apply(m.x);
    return m;
  }

 private:
  double uniform() { return std::uniform_real_distribution<double>()(rng_); }
  double normal() { return std::normal_distribution<double>()(rng_); }

  std::size_t size_;
  Norm norm_;
  const DomainProjection& projection_;
  std::mt19937_64 rng_;
};

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Random points of a bounded domain.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "estimate/quotient.h"

namespace lipscope {

// Uniform in a box or in a ball of any lp norm. In the intersection of a ball and a box: uniform in
// the ball, then moved into the box, except for linf, where it is a box again. Borrows the domain.
class DomainSampler {
 public:
  DomainSampler(const Graph& graph, const Domain& domain);

  // Why there are no uniform points in the domain; empty when there are.
  [[nodiscard]] std::string unsupported() const;

  // False when no point of the domain was found.
  [[nodiscard]] bool draw(std::mt19937_64& rng, std::span<double> point) const;

  // Entries that are the same at all points of the domain: 1, else 0.
  [[nodiscard]] std::span<const std::uint8_t> frozen() const { return frozen_; }
  // The longest side of the smallest box that holds the domain.
  [[nodiscard]] double extent() const { return extent_; }
  [[nodiscard]] const DomainProjection& projection() const { return projection_; }

 private:
  void draw_in_box(std::mt19937_64& rng, std::span<double> point) const;
  void draw_in_ball(std::mt19937_64& rng, std::span<double> point) const;

  const Domain& domain_;
  DomainProjection projection_;
  std::vector<std::uint8_t> frozen_;
  double extent_ = 0;
};

}  // namespace lipscope

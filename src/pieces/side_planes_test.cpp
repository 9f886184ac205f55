// SPDX-License-Identifier: Apache-2.0
// Bounds of linear functions where others are at least 0.
#include "pieces/side_planes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/rounding.h"
#include "ops/kind.h"

namespace lipscope {
namespace {

double value_at(std::span<const double> row, const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t j = 0; j < x.size(); ++j) sum += row[j] * x[j];
  return sum;
}

struct Part {
  Domain domain;
  Planes planes;
  std::vector<double> row, inner;  // the point is in the part
};

// A box or a ball of l2 in it, with planes that hold at a point of it.
Part random_part(Rng& rng, std::size_t n, std::size_t count) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  Part part;
  std::vector<double> low, high, middle;
  for (std::size_t j = 0; j < n; ++j) {
    middle.push_back(normal(rng));
    const double half = uniform(rng) < 0.1 ? 0 : uniform(rng);
    low.push_back(middle.back() - half);
    high.push_back(middle.back() + half);
    part.inner.push_back(low[j] + uniform(rng) * (high[j] - low[j]));
    part.row.push_back(normal(rng));
  }
  part.domain.box = Box{Tensor::vector(low), Tensor::vector(high)};
  for (std::size_t s = 0; s < count; ++s) {
    std::vector<double> plane;
    for (std::size_t j = 0; j < n; ++j) plane.push_back(uniform(rng) < 0.1 ? 0 : normal(rng));
    part.planes.offsets.push_back(uniform(rng) - value_at(plane, part.inner));
    part.planes.weights.insert(part.planes.weights.end(), plane.begin(), plane.end());
  }
  return part;
}

TEST(SidePlanes, BoundEveryPointOfThePart) {
  Rng rng(11);
  std::uniform_real_distribution<double> uniform;
  int better = 0, tried = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const std::size_t n = 1 + rng() % 6, count = 1 + rng() % 5;
    const Part part = random_part(rng, n, count);
    const DomainSupport domain(part.domain, n);
    const auto multipliers = best_multipliers(domain, part.row, part.planes);
    const double plain = domain.max_up(part.row.data());
    if (multipliers.empty()) continue;
    const double top = max_up(domain, part.row, 0, part.planes, multipliers);
    better += top < plain * (plain > 0 ? 0.999 : 1.001);
    for (int sample = 0; sample < 50; ++sample) {
      std::vector<double> x(n);
      for (std::size_t j = 0; j < n; ++j) {
        const double low = domain.low()[j], high = domain.high()[j];
        // Between the point and one of the domain.
        const double there = uniform(rng) < 0.5 ? (uniform(rng) < 0.5 ? low : high)
                                                : low + uniform(rng) * (high - low);
        x[j] = std::clamp(part.inner[j] + uniform(rng) * (there - part.inner[j]), low, high);
      }
      bool inside = true;
      for (std::size_t s = 0; s < count; ++s)
        inside = inside &&
                 part.planes.offsets[s] + value_at(std::span(&part.planes.weights[s * n], n), x) >=
                     1e-12;
      if (!inside) continue;
      ++tried;
      EXPECT_LE(value_at(part.row, x), top + 1e-12);
    }
  }
  EXPECT_GT(better, 1000);
  EXPECT_GT(tried, 10000);
}

// With one plane the best multiplier is 0 or one of the places where a term of the bound turns.
TEST(SidePlanes, OnePlaneIsUsedAsWellAsPossible) {
  Rng rng(12);
  for (int trial = 0; trial < 500; ++trial) {
    const std::size_t n = 1 + rng() % 8;
    const Part part = random_part(rng, n, 1);
    const DomainSupport domain(part.domain, n);
    double least = domain.max_up(part.row.data());
    for (std::size_t j = 0; j < n; ++j) {
      const double turn = -part.row[j] / part.planes.weights[j];
      if (!(turn > 0) || !(turn < kMaxDouble)) continue;
      const std::vector<double> here{turn};
      least = std::min(least, max_up(domain, part.row, 0, part.planes, here));
    }
    const auto multipliers = best_multipliers(domain, part.row, part.planes);
    EXPECT_NEAR(max_up(domain, part.row, 0, part.planes, multipliers), least,
                1e-9 * (1 + std::abs(least)));
  }
}

TEST(SidePlanes, ShowThatAPartIsEmpty) {
  const Domain unit{.box = Box{Tensor::vector(std::vector<double>{0, 0}),
                               Tensor::vector(std::vector<double>{1, 1})}};
  const DomainSupport domain(unit, 2);
  const std::vector<double> row{1, -2};
  const Planes planes{{1, 1}, {-2.5}};  // x + y >= 2.5
  const auto multipliers = best_multipliers(domain, row, planes);
  ASSERT_EQ(multipliers.size(), 1U);
  // The largest value is below the least one on the box.
  EXPECT_LT(max_up(domain, row, 0, planes, multipliers), -2.0);
}

TEST(SidePlanes, AcceptNoMultiplierBelowZero) {
  const Domain unit{
      .box = Box{Tensor::vector(std::vector<double>{0}), Tensor::vector(std::vector<double>{1})}};
  const DomainSupport domain(unit, 1);
  const std::vector<double> row{1};
  for (const double bad : {-0x1p-1074, -1.0, kNaN, kInf}) {
    const std::vector<double> multipliers{bad};
    EXPECT_EQ(max_up(domain, row, 0, {{1}, {0}}, multipliers), kInf);
  }
}

}  // namespace
}  // namespace lipscope

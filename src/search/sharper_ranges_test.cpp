// SPDX-License-Identifier: Apache-2.0
// Ranges by lines chosen for each of their ends.
#include "search/sharper_ranges.h"

#include <gtest/gtest.h>

#include "pieces/pieces_for_test.h"
#include "search/bounded_search.h"

namespace lipscope {
namespace {

using namespace testing_support;

const auto kNever = [] { return false; };

// A box, a ball of any norm, or both.
Domain any_domain(Rng& rng, Index n) {
  Domain domain;
  const auto size = static_cast<std::size_t>(n);
  const Tensor center = random_tensor(rng, {n}, -1, 1);
  if (rng() % 3 != 0)
    domain.ball = Ball{center, 0.4, Norm(std::vector<double>{1, 1.5, 2, 3, HUGE_VAL}[rng() % 5])};
  if (!domain.ball || rng() % 3 == 0) {
    std::vector<double> low(size), high(size);
    for (std::size_t j = 0; j < size; ++j) {
      low[j] = center.doubles()[j] - 0.3;
      high[j] = center.doubles()[j] + 0.3;
    }
    domain.box = Box{Tensor::vector(low), Tensor::vector(high)};
  }
  return domain;
}

// A corner of the box around the domain or an inner point of that, taken into the domain.
std::vector<double> any_point(Rng& rng, const DomainSupport& domain) {
  std::uniform_real_distribution<double> uniform(0, 1);
  const bool corner = rng() % 2 == 0;
  std::vector<double> x;
  for (std::size_t j = 0; j < domain.inputs(); ++j) {
    const double t = corner ? static_cast<double>(rng() % 2) : uniform(rng);
    x.push_back((1 - t) * domain.low()[j] + t * domain.high()[j]);
  }
  domain.project(x);
  return x;
}

void expect_holds(Rng& rng, const LayeredNet& net, const BoundedSearch& region) {
  for (int point = 0; point < 20; ++point) {
    const auto z = values_at(net, any_point(rng, region.domain()));
    for (std::size_t k = 1; k < z.size(); ++k) {
      for (std::size_t i = 0; i < z[k].size(); ++i) {
        if (net.layers[k].below[i] == net.layers[k].above[i]) continue;
        EXPECT_LE(region.ranges()[k][i].lo, z[k][i]);
        EXPECT_GE(region.ranges()[k][i].hi, z[k][i]);
      }
    }
  }
}

double total_width(const BoundedSearch& region) {
  double sum = 0;
  for (const auto& layer : region.ranges()) {
    for (const Interval& range : layer) sum += range.hi - range.lo;
  }
  return sum;
}

// Whatever lines a certificate names.
TEST(SharperRanges, HoldAtEveryPointForAnyLines) {
  Rng rng(41);
  double before = 0, after = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const Index n = 1 + pick_of(rng, 4);
    const Graph graph = random_pieces(rng, n, {5, 4, 4}, 1,
                                      {"Relu", "LeakyRelu", "Abs", "Tanh", "Sigmoid", "Softplus",
                                       "Elu", "Clip", "HardSigmoid", "PRelu", "MaxMin"});
    const LayeredNet net = layered(graph);
    const Domain domain = any_domain(rng, n);
    BoundedSearch region(net, domain);
    ASSERT_TRUE(region.usable());
    before += total_width(region);
    SharpEnds ends = region.sharpen(8, kNever);
    after += total_width(region);
    expect_holds(rng, net, region);

    BoundedSearch again(net, domain);
    ASSERT_TRUE(again.sharpen(ends));
    for (std::size_t k = 0; k < net.hidden(); ++k) {
      for (std::size_t i = 0; i < again.ranges()[k].size(); ++i) {
        const Interval a = region.ranges()[k][i], b = again.ranges()[k][i];
        EXPECT_NEAR(a.lo, b.lo, 1e-12 * (1 + std::fabs(a.lo)));
        EXPECT_NEAR(a.hi, b.hi, 1e-12 * (1 + std::fabs(a.hi)));
      }
    }
    for (auto& end : ends) {
      for (std::uint8_t& mix : end.mixes) mix = static_cast<std::uint8_t>(rng() % 256);
    }
    BoundedSearch other(net, domain);
    ASSERT_TRUE(other.sharpen(ends));
    expect_holds(rng, net, other);
  }
  EXPECT_LT(after, 0.99 * before);
}

// relu(x) on [-1, 1.2]: the line x below it says -1, the line 0 says 0.
TEST(SharperRanges, FindTheBetterSideOfAKink) {
  GraphMaker m;
  const auto layer = [&](ValueId x) {
    return m.add("Gemm", {x, m.weights({1, 1}, {1.0}), m.weights({1}, {0.0})});
  };
  const ValueId behind = m.add("Relu", {layer(m.input({1, 1}))});
  const Graph graph = m.finish(layer(m.add("Relu", {layer(behind)})));
  const LayeredNet net = layered(graph);
  const Domain domain{.box = Box{Tensor::vector(std::vector<double>{-1.0}),
                                 Tensor::vector(std::vector<double>{1.2})}};
  BoundedSearch region(net, domain);
  EXPECT_NEAR(region.ranges()[1][0].lo, -1, 1e-9);
  const SharpEnds ends = region.sharpen(8, kNever);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_FALSE(ends[0].above);
  EXPECT_LE(region.ranges()[1][0].lo, 0);
  EXPECT_NEAR(region.ranges()[1][0].lo, 0, 1e-9);
  EXPECT_NEAR(region.ranges()[1][0].hi, 1.2, 1e-9);
}

TEST(SharperRanges, RefuseLinesOfAnotherNetwork) {
  Rng rng(43);
  const Graph graph = random_pieces(rng, 2, {3, 4}, 1, {"Tanh"});
  const LayeredNet net = layered(graph);
  const Domain domain{.ball = Ball{Tensor::vector(std::vector<double>{0, 0}), 1, Norm(2)}};
  const auto accepted = [&](const CaseTree::SharpEnd& end) {
    return BoundedSearch(net, domain).sharpen(SharpEnds{end});
  };
  EXPECT_TRUE(accepted({{1, 3}, true, {0, 128, 255}}));
  EXPECT_FALSE(accepted({{1, 4}, true, {0, 128, 255}}));
  EXPECT_FALSE(accepted({{1, 3}, true, {0, 128}}));
  EXPECT_FALSE(accepted({{0, 1}, true, {}}));
  EXPECT_FALSE(accepted({{2, 0}, true, {0, 128, 255, 0, 0, 0, 0}}));
}

}  // namespace
}  // namespace lipscope

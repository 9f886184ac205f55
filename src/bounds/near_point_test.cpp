// SPDX-License-Identifier: Apache-2.0
#include "bounds/near_point.h"

#include <gtest/gtest.h>

#include "attention/attention_graphs_for_test.h"
#include "bounds/whole_numbers_for_test.h"
#include "lipscope/evaluate.h"

namespace lipscope {
namespace {

using namespace testing_support;

double widest(const DerivativeBoxes::Row& row) {
  double width = 0;
  for (const Interval& x : row) width = std::max(width, width_up(x));
  return width;
}

// Both ways to the product enclose it, so they meet; the new one is not wider.
std::pair<double, double> widths(const Graph& graph, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Box> boxes;
  std::vector<double> direction;
  for (const ValueId id : graph.inputs()) {
    const Tensor x = random_tensor(rng, graph.value(id).type.shape);
    const Tensor d = random_tensor(rng, graph.value(id).type.shape);
    boxes.push_back({x, x});
    direction.insert(direction.end(), d.doubles().begin(), d.doubles().end());
  }
  const ValueId out = graph.outputs()[0];
  const auto plain = DerivativeBoxes(graph, boxes).push(direction, out);
  const auto near = NearPoint(graph, boxes).push(direction, out);
  EXPECT_TRUE(plain && near);
  if (!plain || !near) return {};
  EXPECT_EQ(plain->size(), near->size());
  for (std::size_t i = 0; i < plain->size(); ++i)
    EXPECT_FALSE(is_nan(intersect((*plain)[i], (*near)[i]))) << i;
  EXPECT_LE(widest(*near), 1.01 * widest(*plain));
  return {widest(*near), widest(*plain)};
}

TEST(NearPoint, MeetsIntervals) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto s = static_cast<unsigned>(seed);
    widths(attention_graph({.seed = s}), seed);
    widths(attention_graph({.causal = true, .rotary = true, .seed = s}), seed);
    widths(attention_graph({.where = true, .keys_first = true, .seed = s}), seed);
    widths(attention_graph({.cross = true, .seed = s}), seed);
  }
}

// Dense layers, tanh and residual sums: intervals grow much faster.
Graph deep_network(std::uint64_t seed, const std::string& activation, int layers) {
  Rng rng(seed);
  GraphMaker m;
  constexpr Index kWidth = 24;
  ValueId x = m.input({1, kWidth});
  for (int layer = 0; layer < layers; ++layer) {
    const ValueId y = m.add("MatMul", {x, m.weights(random_tensor(rng, {kWidth, kWidth}, -1, 1))});
    x = m.add("Add", {x, m.add(activation, {y})});
  }
  const auto halves = m.add_many("Split", x, 2, {{"axis", Index{1}}});
  return m.finish(m.add("Mul", {halves[0], m.add("Sin", {halves[1]})}));
}

TEST(NearPoint, CloserThanIntervalsInDeepNetworks) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const auto [near, plain] = widths(deep_network(seed, seed % 2 == 0 ? "Tanh" : "Relu", 6), seed);
    EXPECT_LE(near, 0.5 * plain) << seed;
  }
}

// Whole numbers: plain arithmetic is exact, so the product itself has to be inside.
TEST(NearPoint, HoldsExactProducts) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const WholeNumbers c = whole_numbers(seed);
    const Tensor exact = c.product();
    const auto found = NearPoint(c.graph, std::vector<Box>{{c.at, c.at}})
                           .push(c.direction.doubles(), c.graph.outputs()[0]);
    ASSERT_TRUE(found);
    for (std::size_t i = 0; i < found->size(); ++i)
      ASSERT_TRUE(contains((*found)[i], exact.doubles()[i])) << seed << " " << i;
  }
}

}  // namespace
}  // namespace lipscope

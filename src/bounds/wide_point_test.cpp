// SPDX-License-Identifier: Apache-2.0
#include "bounds/wide_point.h"

#include <gtest/gtest.h>

#include "attention/attention_graphs_for_test.h"
#include "bounds/near_point.h"
#include "bounds/whole_numbers_for_test.h"
#include "lipscope/evaluate.h"

namespace lipscope {
namespace {

using namespace testing_support;

struct PointAndDirection {
  std::vector<Tensor> at;
  std::vector<double> direction;
};

PointAndDirection random_point(const Graph& graph, std::uint64_t seed) {
  Rng rng(seed);
  PointAndDirection out;
  for (const ValueId id : graph.inputs()) {
    out.at.push_back(random_tensor(rng, graph.value(id).type.shape));
    const Tensor d = random_tensor(rng, graph.value(id).type.shape);
    out.direction.insert(out.direction.end(), d.doubles().begin(), d.doubles().end());
  }
  return out;
}

// As thin as two doubles, and in agreement with what intervals know.
void expect_thin(const Graph& graph, std::uint64_t seed) {
  const PointAndDirection p = random_point(graph, seed);
  const ValueId out = graph.outputs()[0];
  const auto wide = wide_push(graph, p.at, p.direction, out);
  ASSERT_TRUE(wide) << seed;
  std::vector<Box> boxes;
  for (const Tensor& x : p.at) boxes.push_back({x, x});
  const auto near = NearPoint(graph, boxes).push(p.direction, out);
  ASSERT_TRUE(near);
  ASSERT_EQ(wide->size(), near->size());
  double largest = 0;
  for (const Interval& x : *wide) largest = std::max(largest, magnitude(x));
  for (std::size_t i = 0; i < wide->size(); ++i) {
    EXPECT_LE(width_up((*wide)[i]), 1e-13 * largest) << seed;
    EXPECT_FALSE(is_nan(intersect((*wide)[i], (*near)[i]))) << seed << " " << i;
  }
}

TEST(WidePoint, MeetsIntervals) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const auto s = static_cast<unsigned>(seed);
    expect_thin(attention_graph({.seed = s}), seed);
    expect_thin(attention_graph({.rotary = true, .seed = s}), seed);
    expect_thin(attention_graph({.where = true, .keys_first = true, .seed = s}), seed);
    expect_thin(attention_graph({.cross = true, .seed = s}), seed);
  }
}

// So many layers that nothing is left of intervals.
TEST(WidePoint, DeepNetworksStayThin) {
  for (const char* activation : {"Tanh", "Gelu", "Sigmoid", "Erf"}) {
    Rng rng(3);
    GraphMaker m;
    constexpr Index kWidth = 12;
    ValueId x = m.input({1, kWidth});
    for (int layer = 0; layer < 30; ++layer) {
      const ValueId w = m.weights(random_tensor(rng, {kWidth, kWidth}, -1, 1));
      x = m.add("Add", {x, m.add(activation, {m.add("MatMul", {x, w})})});
    }
    const Graph graph = m.finish(x);
    const PointAndDirection p = random_point(graph, 5);
    const auto wide = wide_push(graph, p.at, p.direction, graph.outputs()[0]);
    ASSERT_TRUE(wide);
    const Trace trace(graph, p.at);
    const Tensor plain = trace.jvp(split_inputs(graph, p.direction))[0];
    double largest = 0;
    for (const double e : plain.doubles()) largest = std::max(largest, std::fabs(e));
    for (std::size_t i = 0; i < wide->size(); ++i) {
      EXPECT_LE(width_up((*wide)[i]), 1e-13 * largest) << activation;
      EXPECT_NEAR(midpoint((*wide)[i]), plain.doubles()[i], 1e-6 * largest) << activation;
    }
  }
}

// Constants computed with rounding are computed again.
TEST(WidePoint, FoldedConstantsAreNotAsWideAsTheirBoxes) {
  GraphMaker m;
  const ValueId angle = m.weights({2}, {0.7, 1.3});
  const ValueId turn = m.add("Cos", {m.add("Div", {angle, m.weights({}, {3})})});
  ValueId x = m.input({2});
  // (x cos)^8 - (x cos)^7 x cos = 0, with room for rounding to show.
  ValueId power = m.add("Mul", {x, turn});
  const ValueId first = power;
  for (int i = 0; i < 7; ++i) power = m.add("Mul", {power, first});
  const Graph graph = m.finish(m.add("Mul", {power, m.weights({}, {1e12})}));
  bool folded = false;
  for (const Value& value : graph.values())
    folded = folded || (value.constant && value.constant->folded() != nullptr);
  EXPECT_TRUE(folded);
  expect_thin(graph, 1);
}

TEST(WidePoint, SaysWhenAnOperatorDoesNotTell) {
  GraphMaker m;
  const Graph graph = m.finish(m.add("Softsign", {m.input({3})}));
  const PointAndDirection p = random_point(graph, 1);
  EXPECT_FALSE(wide_push(graph, p.at, p.direction, graph.outputs()[0]));
  GraphMaker known;
  const Graph tanh = known.finish(known.add("Tanh", {known.input({3})}));
  EXPECT_FALSE(wide_push(tanh, p.at, p.direction, tanh.outputs()[0], [] { return true; }));
}

// Whole numbers: plain arithmetic is exact, so the product itself has to be inside.
TEST(WidePoint, HoldsExactProducts) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const WholeNumbers c = whole_numbers(seed);
    const Tensor exact = c.product();
    const auto found =
        wide_push(c.graph, std::vector{c.at}, c.direction.doubles(), c.graph.outputs()[0]);
    ASSERT_TRUE(found);
    for (std::size_t i = 0; i < found->size(); ++i)
      ASSERT_TRUE(contains((*found)[i], exact.doubles()[i])) << seed << " " << i;
  }
}

}  // namespace
}  // namespace lipscope

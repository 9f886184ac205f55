// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/checkpoint.h"
#include "estimate/counted_for_test.h"
#include "estimate/pattern_search.h"
#include "estimate/quotient.h"
#include "lipscope/bound.h"
#include "lipscope/evaluate.h"
#include "net/nets_for_test.h"
#include "net/piecewise_linear_net.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;
using Ints = std::vector<Index>;

double pattern_ascend(const Graph& graph, const std::string& norm = "2", Domain domain = {},
                      double seconds = 0.2) {
  const Query query{&graph, parse_norms(norm), std::move(domain)};
  const Budget budget{.time = std::chrono::duration<double>(seconds),
                      .methods = {"pattern-ascent"}};
  const Answer answer = find_bracket(query, budget, counted());
  const auto bound = answer.bracket.lower(Guarantee::kProved);
  if (!bound) return 0;
  EXPECT_TRUE(in_domain(query.domain, answer.witness->x));
  EXPECT_TRUE(in_domain(query.domain, answer.witness->y));
  EXPECT_GE(proved_quotient(query, *answer.witness), bound->value);
  return bound->value;
}

// The same function as the graph, with residuals, convolutions and a constant behind the kink.
TEST(PiecewiseLinearNet, HasTheValuesAndDerivativesOfTheGraph) {
  Rng rng(4);
  GraphMaker m;
  const auto random = [&](Shape shape) { return m.weights(random_tensor(rng, std::move(shape))); };
  const ValueId x = m.input({1, 2, 5});
  ValueId y = m.add("Conv", {x, random({3, 2, 3}), random({3})}, {{"pads", Ints{1, 1}}});
  y = m.add("LeakyRelu", {y}, {{"alpha", 0.2}});
  ValueId z = m.add("Conv", {y, random({3, 3, 1}), random({3})});
  z = m.add("Relu", {m.add("Add", {z, y})});
  z = m.add("Gemm", {m.add("Flatten", {z}), random({15, 4}), random({4})});
  const Graph graph = m.finish(m.add("Sub", {m.add("Abs", {z}), random({4})}));
  const auto net = PiecewiseLinearNet::of(*testing_support::network_with_biases(graph));
  ASSERT_TRUE(net) << net.reason();
  EXPECT_EQ(net->units(), 15U + 15U + 4U);
  for (int trial = 0; trial < 20; ++trial) {
    const Tensor at = random_tensor(rng, {1, 2, 5}, -3, 3), along = random_tensor(rng, {1, 2, 5});
    const std::vector<double> point(at.doubles().begin(), at.doubles().end()),
        d(along.doubles().begin(), along.doubles().end());
    const auto values = net->values(point);
    const Trace trace(graph, std::vector<Tensor>{at});
    const Tensor expected = trace.value(graph.outputs()[0]);
    const Tensor slope = trace.jvp(std::vector<Tensor>{along})[0];
    const auto pushed = net->push(net->gates(values), d).back();
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(values.back()[i], expected.at(static_cast<Index>(i)), 1e-12);
      EXPECT_NEAR(pushed[i], slope.at(static_cast<Index>(i)), 1e-12);
    }
    // <w, J d> = <J'w, d>.
    const std::vector<double> w{1, -2, 0.5, 3};
    const auto pulled = net->pull(net->gates(values), w)[0];
    double left = 0, right = 0;
    for (std::size_t i = 0; i < 4; ++i) left += w[i] * pushed[i];
    for (std::size_t i = 0; i < d.size(); ++i) right += pulled[i] * d[i];
    EXPECT_NEAR(left, right, 1e-11);
  }
}

// One start of a large network may take all the time there is.
TEST(PatternSearch, StartsCanBeEnded) {
  Rng rng(5);
  GraphMaker m;
  ValueId x = m.input({1, 40});
  for (int layer = 0; layer < 3; ++layer)
    x = m.add("Relu", {m.add("MatMul", {x, m.weights(random_tensor(rng, {40, 40}, -1, 1))})});
  const Graph graph = m.finish(m.add("MatMul", {x, m.weights(random_tensor(rng, {40, 5}, -1, 1))}));
  const auto net = PiecewiseLinearNet::of(*testing_support::network_with_biases(graph));
  ASSERT_TRUE(net) << net.reason();
  const auto work_of = [&](bool stop) {
    PatternSearch search(
        *net, parse_norms("2"), [](std::span<double>) {}, 1);
    const double before = errand().work;
    search.climb([&] { return stop; });
    EXPECT_GT(search.best().value, 0);
    return errand().work - before;
  };
  EXPECT_LT(work_of(true), 0.1 * work_of(false));
}

TEST(PiecewiseLinearNet, RefusesOtherActivations) {
  for (const std::string op : {"Tanh", "HardSigmoid", "Clip"}) {
    GraphMaker m;
    const ValueId x = m.add("MatMul", {m.input({1, 2}), m.weights({2, 2}, {1, 2, 3, 4})});
    const Graph graph = m.finish(
        op == "Clip" ? m.add(op, {x, m.weights({}, {0}), m.weights({}, {1})}) : m.add(op, {x}));
    const auto net = PiecewiseLinearNet::of(*testing_support::network_with_biases(graph));
    EXPECT_FALSE(net) << op;
    EXPECT_NE(net.reason(), "");
  }
}

// One input: the pieces lie between the kinks of the units.
TEST(PatternAscent, FindsTheSteepestPieceOfAFunctionOfOneNumber) {
  Rng rng(9);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 10; ++trial) {
    constexpr std::size_t kUnits = 8;
    std::vector<double> w(kUnits), b(kUnits), c(kUnits), kinks;
    for (std::size_t i = 0; i < kUnits; ++i) {
      w[i] = static_cast<float>(normal(rng));
      b[i] = static_cast<float>(normal(rng));
      c[i] = static_cast<float>(normal(rng));
      kinks.push_back(-b[i] / w[i]);
    }
    std::ranges::sort(kinks);
    kinks.insert(kinks.begin(), kinks.front() - 1);
    kinks.push_back(kinks.back() + 1);
    double steepest = 0;
    for (std::size_t k = 0; k + 1 < kinks.size(); ++k) {
      const double x = 0.5 * (kinks[k] + kinks[k + 1]);
      double slope = 0;
      for (std::size_t i = 0; i < kUnits; ++i) slope += w[i] * x + b[i] > 0 ? w[i] * c[i] : 0;
      steepest = std::max(steepest, std::fabs(slope));
    }
    GraphMaker m;
    const ValueId h = m.add("Gemm", {m.input({1, 1}), m.weights({1, 8}, w), m.weights({8}, b)});
    const Graph graph = m.finish(m.add("MatMul", {m.add("Relu", {h}), m.weights({8, 1}, c)}));
    const double found = pattern_ascend(graph);
    EXPECT_LE(found, steepest * (1 + 1e-12));
    EXPECT_GE(found, steepest * (1 - 1e-6)) << trial;
  }
}

TEST(PatternAscent, StaysInTheDomain) {
  // relu(x): slope 0 left of zero.
  GraphMaker m;
  const Graph graph = m.finish(m.add("Relu", {m.input({1, 1})}));
  const auto at = [](double low, double high) {
    return Domain{.box = Box{Tensor::vector({low}), Tensor::vector({high})}, .ball = {}};
  };
  EXPECT_EQ(pattern_ascend(graph, "2", at(-2, -1)), 0);
  EXPECT_NEAR(pattern_ascend(graph, "2", at(-2, 1)), 1, 1e-12);
  EXPECT_NEAR(pattern_ascend(graph, "inf", at(-1, 2)), 1, 1e-12);
}

}  // namespace
}  // namespace lipscope

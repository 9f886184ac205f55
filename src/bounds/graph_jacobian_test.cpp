// SPDX-License-Identifier: Apache-2.0
#include "bounds/graph_jacobian.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/attention_graphs_for_test.h"
#include "bounds/boxes.h"
#include "bounds/gradient_graph.h"
#include "lipscope/evaluate.h"

namespace lipscope {
namespace {

using namespace testing_support;

const auto kGoOn = [] { return false; };

// Normalised rows, products, quotients, softmax, curves, residual sums.
Graph gated_network(std::uint64_t seed) {
  Rng rng(seed);
  const char* const curves[] = {"Tanh", "Gelu", "Sigmoid", "Softplus"};
  GraphMaker m;
  const ValueId x = m.input({2, 6});
  const auto dense = [&](ValueId v, Index from, Index to) {
    return m.add("MatMul", {v, m.weights(random_tensor(rng, {from, to}, -0.7, 0.7))});
  };
  ValueId y = m.add(seed % 2 == 0 ? "LayerNormalization" : "RMSNormalization",
                    {x, m.weights(random_tensor(rng, {6}, 0.5, 1.5))}, {{"epsilon", 0.01}},
                    seed % 2 == 0 ? 17 : 23);
  y = m.add("Mul", {m.add(curves[seed % 4], {dense(y, 6, 6)}), dense(y, 6, 6)});
  y = m.add("Add", {x, y});
  const ValueId below = m.add("Add", {m.add("Sigmoid", {dense(y, 6, 1)}), m.weights({1}, {2.0})});
  y = m.add("Div", {m.add("Softmax", {y}), below});
  return m.finish(m.add("Reshape", {dense(y, 6, 2), m.integers({4})}));
}

std::vector<Graph> test_graphs() {
  std::vector<Graph> graphs;
  for (std::uint64_t seed = 0; seed < 4; ++seed) graphs.push_back(gated_network(seed));
  graphs.push_back(attention_graph({.causal = true, .rotary = true, .seed = 1}));
  graphs.push_back(attention_graph({.where = true, .keys_first = true, .seed = 2}));
  graphs.push_back(attention_graph({.scale_queries = true, .cross = true, .seed = 3}));
  return graphs;
}

TEST(GradientGraph, IsTheGradient) {
  for (const Graph& graph : test_graphs()) {
    const AffineNodes nodes(graph);
    const ValueId out = graph.outputs()[0];
    const auto size = static_cast<std::size_t>(element_count(graph.value(out).type.shape));
    Rng rng(7);
    const Tensor rows = random_tensor(rng, {2, static_cast<Index>(size)});
    std::string reason;
    const auto gradients = gradient_graph(graph, nodes, rows.doubles(), reason);
    ASSERT_TRUE(gradients) << reason;
    std::vector<Tensor> x;
    for (const ValueId id : graph.inputs())
      x.push_back(random_tensor(rng, graph.value(id).type.shape, -1, 1));
    const std::vector<Tensor> found = evaluate(*gradients, x);
    const Trace trace(graph, x);
    for (std::size_t r = 0; r < 2; ++r) {
      Tensor weight = Tensor::zeros(ElementType::kFloat64, graph.value(out).type.shape);
      std::copy_n(rows.doubles().begin() + static_cast<Index>(r * size), size,
                  weight.doubles().begin());
      const std::vector<Tensor> expected = trace.vjp(std::vector{weight});
      for (std::size_t k = 0; k < expected.size(); ++k) {
        const Tensor& g = found[r * expected.size() + k];
        for (std::size_t i = 0; i < expected[k].doubles().size(); ++i)
          EXPECT_NEAR(g.doubles()[i], expected[k].doubles()[i], 1e-10);
      }
    }
  }
}

// Difference quotients on the ball, in intervals, never exceed the bound; on a small ball it is
// near the norm of the Jacobian.
TEST(GraphJacobian, BoundsEveryQuotient) {
  for (const Graph& graph : test_graphs()) {
    Rng rng(11);
    const auto n = input_size(graph);
    const Tensor center = random_tensor(rng, {n}, -1, 1);
    for (const double p : {1.0, 2.0, kInf}) {
      for (const double q : {1.0, 2.0, kInf}) {
        double before = 0;
        for (const double radius : {1e-5, 0.01, 0.1}) {
          Domain domain;
          domain.ball = Ball{center, radius, Norm(p)};
          const NormPair norms{Norm(p), Norm(q)};
          ASSERT_EQ(graph_jacobian_unsupported(graph, domain), "");
          const GraphJacobian found = graph_jacobian_bound(graph, norms, domain, kGoOn);
          ASSERT_LT(found.upper, kInf) << found.reason;
          EXPECT_GE(found.upper, before);
          before = found.upper * (1 - 1e-9);
          double largest = 0;
          for (int s = 0; s < 10; ++s) {
            std::vector<std::vector<double>> points(2);
            std::vector<double> away;
            for (std::vector<double>& point : points) {
              const Tensor step = random_tensor(rng, {n}, -1, 1);
              const double size = pnorm_up(step.doubles(), p);
              for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
                point.push_back(center.doubles()[i] +
                                step.doubles()[i] * radius / size * (1 - 1e-9));
            }
            for (std::size_t i = 0; i < points[0].size(); ++i)
              away.push_back(sub_up(points[0][i], points[1][i]));
            const auto value = [&](const std::vector<double>& x) {
              std::vector<Box> at;
              for (const Tensor& t : split_inputs(graph, x)) at.push_back({t, t});
              ValueBoxes boxes(graph, at);
              return boxes.at(graph.outputs()[0]);
            };
            const Box a = value(points[0]), b = value(points[1]);
            std::vector<double> apart;
            for (std::size_t i = 0; i < a.lower.doubles().size(); ++i) {
              const Interval d = Interval{a.lower.doubles()[i], a.upper.doubles()[i]} -
                                 Interval{b.lower.doubles()[i], b.upper.doubles()[i]};
              apart.push_back(mignitude(d));
            }
            const double quotient = pnorm_down(apart, q) / pnorm_up(away, p) * (1 - 1e-12);
            EXPECT_LE(quotient, found.upper) << p << " " << q << " " << radius;
            largest = std::max(largest, quotient);
          }
          if (radius < 1e-4 && p == kInf && q == kInf) {
            EXPECT_GT(largest, 0.05 * found.upper);
          }
        }
      }
    }
  }
}

// x -> tanh(3 x) on [-r, r] has its largest slope, 3, in the middle; relu both of its slopes.
TEST(GraphJacobian, KnownConstants) {
  for (const double radius : {1e-3, 0.5}) {
    Domain domain;
    domain.box = Box{Tensor::vector(std::vector<double>{-radius}),
                     Tensor::vector(std::vector<double>{radius})};
    for (const char* name : {"Tanh", "Relu"}) {
      GraphMaker m;
      const ValueId x = m.input({1});
      const Graph graph = m.finish(m.add(name, {m.add("Mul", {x, m.weights({1}, {3.0})})}));
      const NormPair norms{Norm(2), Norm(2)};
      const double upper = graph_jacobian_bound(graph, norms, domain, kGoOn).upper;
      EXPECT_GE(upper, 3);
      EXPECT_LE(upper, 3 + 1e-9) << name;
    }
  }
}

// A step has no constant: neither as a function of entries nor through integers.
TEST(GraphJacobian, JumpsHaveNone) {
  Domain domain;
  domain.box = Box{Tensor::vector(std::vector<double>{-1}), Tensor::vector(std::vector<double>{1})};
  const NormPair norms{Norm(2), Norm(2)};
  for (const bool integers : {false, true}) {
    GraphMaker m;
    const ValueId x = m.input({1});
    ValueId y = integers ? m.add("Cast", {x}, {{"to", Index{7}}}) : m.add("Floor", {x});
    if (integers) y = m.add("Cast", {y}, {{"to", Index{1}}});
    const Graph graph = m.finish(m.add("Add", {x, y}));
    EXPECT_EQ(graph_jacobian_bound(graph, norms, domain, kGoOn).upper, kInf) << integers;
  }
}

// One number times all others, so that it meets itself in every term of a sum.
TEST(GraphJacobian, BroadcastFactors) {
  GraphMaker m;
  const ValueId x = m.input({7});
  const ValueId first = m.add("Slice", {x, m.integers({0}), m.integers({1}), m.integers({0})});
  const ValueId product = m.add("Mul", {first, m.add("Tanh", {x})});
  const Graph graph = m.finish(m.add("ReduceSum", {product}, {{"keepdims", Index{0}}}, 11));
  Domain domain;
  Rng rng(5);
  domain.ball = Ball{random_tensor(rng, {7}, -1, 1), 1e-6, Norm::infinity()};
  const NormPair norms{Norm::infinity(), Norm::infinity()};
  const Trace trace(graph, split_inputs(graph, domain.ball->center.doubles()));
  double exact = 0;
  const Tensor one(ElementType::kFloat64, Shape{}, std::vector<double>{1});
  const std::vector<Tensor> gradient = trace.vjp(std::vector{one});
  for (const double g : gradient[0].doubles()) exact += std::fabs(g);
  const double upper = graph_jacobian_bound(graph, norms, domain, kGoOn).upper;
  EXPECT_GE(upper, exact * (1 - 1e-12));
  EXPECT_LE(upper, exact * (1 + 1e-4));
}

TEST(GraphJacobian, SaysWhyNot) {
  const Graph graph = attention_graph({.seed = 3});
  EXPECT_NE(graph_jacobian_unsupported(graph, {}), "");
  Domain domain;
  domain.ball = Ball{Tensor::zeros(ElementType::kFloat64, {12}), 0.1, Norm(2)};
  const NormPair norms{Norm(2), Norm(2)};
  const GraphJacobian stopped = graph_jacobian_bound(graph, norms, domain, [] { return true; });
  EXPECT_EQ(stopped.upper, kInf);
  EXPECT_EQ(stopped.reason, "stopped");
}

}  // namespace
}  // namespace lipscope

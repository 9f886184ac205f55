// SPDX-License-Identifier: Apache-2.0
#include "bounds/linear_bounds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/attention_graphs_for_test.h"
#include "lipscope/evaluate.h"

namespace lipscope {
namespace {

using namespace testing_support;

double unit(Rng& rng) { return std::uniform_real_distribution<double>(0, 1)(rng); }

Tensor flat_point(const Graph& graph, Rng& rng) {
  return random_tensor(rng, {input_size(graph)}, -1, 1);
}

Domain ball_around(const Tensor& center, double radius, Norm norm) {
  Domain domain;
  domain.ball = Ball{center, radius, norm};
  return domain;
}

// A point of the ball, often at its edge or at a corner.
std::vector<double> inside(const Domain& domain, Rng& rng) {
  const Ball& ball = *domain.ball;
  std::vector<double> d(static_cast<std::size_t>(ball.center.size()));
  const bool sparse = unit(rng) < 0.3;
  for (double& e : d) e = sparse && unit(rng) < 0.8 ? 0 : unit(rng) < 0.5 ? -unit(rng) : unit(rng);
  if (ball.norm == Norm::infinity() && unit(rng) < 0.7) {
    for (double& e : d) e = e < 0 ? -1 : 1;
  }
  const double size = pnorm_up(d, ball.norm.p());
  const double length =
      size == 0 ? 0 : ball.radius * (1 - 1e-12) * (unit(rng) < 0.5 ? 1 : unit(rng)) / size;
  std::vector<double> x;
  for (std::size_t i = 0; i < d.size(); ++i) {
    double e = ball.center.doubles()[i] + length * d[i];
    if (domain.box)
      e = std::clamp(e, domain.box->lower.doubles()[i], domain.box->upper.doubles()[i]);
    x.push_back(e);
  }
  return x;
}

// Intervals at a point hold the real output there.
std::vector<Interval> output_at(const Graph& graph, const std::vector<double>& x) {
  std::vector<Box> at;
  for (const Tensor& t : split_inputs(graph, x)) at.push_back({t, t});
  ValueBoxes boxes(graph, at);
  const Box& box = boxes.at(graph.outputs()[0]);
  std::vector<Interval> out;
  for (std::size_t i = 0; i < box.lower.doubles().size(); ++i)
    out.push_back({box.lower.doubles()[i], box.upper.doubles()[i]});
  return out;
}

struct Tightness {
  double linear = 0, intervals = 0;  // width of the first output
};

// Random functions of the outputs against samples, and boxes of all values against them too.
Tightness check_bounds(const Graph& graph, const Domain& domain, std::uint64_t seed) {
  Rng rng(seed);
  const AffineNodes nodes(graph);
  EXPECT_TRUE(nodes.usable());
  LinearBounds bounds(graph, nodes, domain, {});
  const ValueId out = graph.outputs()[0];
  const auto size = static_cast<std::size_t>(element_count(graph.value(out).type.shape));
  std::vector<double> rows(6 * size);
  for (std::size_t e = 2 * size; e < rows.size(); ++e) rows[e] = 2 * unit(rng) - 1;
  rows[0] = 1;
  rows[size] = -1;
  const std::vector<double> low = bounds.lower(out, rows);
  for (int s = 0; s < 20; ++s) {
    const std::vector<Interval> y = output_at(graph, inside(domain, rng));
    for (std::size_t r = 0; r < low.size(); ++r) {
      Interval sum = point(0);
      for (std::size_t e = 0; e < size; ++e) sum += rows[r * size + e] * y[e];
      EXPECT_LE(low[r], sum.hi) << "row " << r;
    }
    const Box& box = bounds.values().at(out);
    for (std::size_t e = 0; e < size; ++e) {
      EXPECT_LE(box.lower.doubles()[e], y[e].hi);
      EXPECT_GE(box.upper.doubles()[e], y[e].lo);
    }
  }
  ValueBoxes plain(graph, input_boxes(graph, domain));
  const Box& box = plain.at(out);
  return {-low[1] - low[0], box.upper.doubles()[0] - box.lower.doubles()[0]};
}

// Convolution, maxima, concatenation, means, products, quotients, normalisation, residual sums.
Graph mixed_network(std::uint64_t seed) {
  Rng rng(seed);
  GraphMaker m;
  const char* const curves[] = {"Relu", "Tanh", "Gelu", "Sigmoid", "Abs", "Softplus", "HardSwish"};
  ValueId x = m.input({1, 2, 6, 6});
  x = m.add("Conv", {x, m.weights(random_tensor(rng, {3, 2, 3, 3}, -0.6, 0.6))});
  x = m.add(curves[seed % 7], {x});
  x = seed % 2 == 0 ? m.add("MaxPool", {x},
                            {{"kernel_shape", std::vector<Index>{2, 2}},
                             {"strides", std::vector<Index>{2, 2}}})
                    : m.add("AveragePool", {x},
                            {{"kernel_shape", std::vector<Index>{2, 2}},
                             {"strides", std::vector<Index>{2, 2}}});
  x = m.add("Reshape", {x, m.integers({1, 12})});
  const ValueId a = m.add("MatMul", {x, m.weights(random_tensor(rng, {12, 8}, -0.5, 0.5))});
  const ValueId b = m.add("MatMul", {x, m.weights(random_tensor(rng, {12, 8}, -0.5, 0.5))});
  const ValueId product = m.add("Mul", {m.add(curves[(seed + 1) % 7], {a}), b});
  const ValueId two = m.weights({1}, {3.0});
  const ValueId quotient = m.add("Div", {a, m.add("Add", {m.add("Sigmoid", {b}), two})});
  ValueId y = m.add("Add", {a, m.add("Max", {product, quotient})});
  y = m.add("LayerNormalization", {y, m.weights(random_tensor(rng, {8}, -1, 1))},
            {{"epsilon", 0.1}});
  y = m.add("Concat", {y, m.add("Min", {a, b}), m.add("Softmax", {y})}, {{"axis", Index{1}}});
  return m.finish(m.add("MatMul", {y, m.weights(random_tensor(rng, {24, 3}, -1, 1))}));
}

TEST(LinearBounds, HoldEverySampleOnMixedNetworks) {
  for (std::uint64_t seed = 0; seed < 14; ++seed) {
    const Graph graph = mixed_network(seed);
    Rng rng(seed);
    const Tensor center = flat_point(graph, rng);
    for (const double p : {1.0, 2.0, 3.0, kInf}) {
      for (const double radius : {1e-4, 0.02, 0.5}) {
        SCOPED_TRACE("seed " + std::to_string(seed) + " p " + std::to_string(p) + " radius " +
                     std::to_string(radius));
        Domain domain = ball_around(center, radius, Norm(p));
        if (seed % 3 == 0) {
          Box box{center, center};
          for (double& e : box.lower.doubles()) e -= 0.4 * radius;
          for (double& e : box.upper.doubles()) e += 0.9 * radius;
          domain.box = box;
        }
        const Tightness found = check_bounds(graph, domain, seed);
        if (HasFailure()) return;
        EXPECT_LE(found.linear, 1.001 * found.intervals);
        if (radius < 1e-3) {
          EXPECT_LE(found.linear, 0.6 * found.intervals);
        }
      }
    }
  }
}

TEST(LinearBounds, HoldEverySampleOfAttention) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const auto s = static_cast<unsigned>(seed);
    const Graph graphs[] = {attention_graph({.seed = s}),
                            attention_graph({.causal = true, .rotary = true, .seed = s}),
                            attention_graph({.where = true, .keys_first = true, .seed = s}),
                            attention_graph({.scale_queries = true, .cross = true, .seed = s})};
    for (const Graph& graph : graphs) {
      Rng rng(seed);
      const Tensor center = flat_point(graph, rng);
      for (const double p : {1.0, 2.0, kInf}) {
        for (const double radius : {1e-5, 0.01, 0.3}) {
          SCOPED_TRACE("seed " + std::to_string(seed) + " p " + std::to_string(p) + " radius " +
                       std::to_string(radius));
          const Tightness found = check_bounds(graph, ball_around(center, radius, Norm(p)), seed);
          if (HasFailure()) return;
          EXPECT_LE(found.linear, 1.001 * found.intervals);
        }
      }
    }
  }
}

// What is lost is of second order: the width of a small ball is twice the gradient's length.
TEST(LinearBounds, TightOnSmallBalls) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Graph graph = seed % 2 == 0
                            ? attention_graph({.causal = true, .seed = static_cast<unsigned>(seed)})
                            : mixed_network(seed);
    Rng rng(seed);
    const Tensor center = flat_point(graph, rng);
    const ValueId out = graph.outputs()[0];
    const Trace trace(graph, split_inputs(graph, center.doubles()));
    Tensor weight = Tensor::zeros(ElementType::kFloat64, graph.value(out).type.shape);
    weight.doubles()[0] = 1;
    std::vector<double> gradient;
    for (const Tensor& part : trace.vjp(std::vector{weight}))
      gradient.insert(gradient.end(), part.doubles().begin(), part.doubles().end());
    const AffineNodes nodes(graph);
    double before = kInf;
    for (const double radius : {1e-3, 1e-4, 1e-5}) {
      LinearBounds bounds(graph, nodes, ball_around(center, radius, Norm(2)), {});
      std::vector<double> rows(2 * static_cast<std::size_t>(weight.size()));
      rows[0] = 1;
      rows[static_cast<std::size_t>(weight.size())] = -1;
      const std::vector<double> low = bounds.lower(out, rows);
      const double ratio = (-low[1] - low[0]) / (2 * radius * norm2_up(gradient));
      EXPECT_GE(ratio, 1 - 1e-3) << seed;
      EXPECT_LE(ratio, before) << seed;
      before = 1 + 0.3 * (ratio - 1) + 1e-3;
    }
    EXPECT_LE(before, 1.01) << seed;
  }
}

TEST(LinearBounds, AffineNetworksAreExact) {
  GraphMaker m;
  const ValueId x = m.input({1, 2});
  const ValueId y = m.add("MatMul", {x, m.weights({2, 2}, {1, 2, 3, 4})});
  const Graph graph = m.finish(m.add("Sub", {m.add("Add", {y, x}), m.weights({2}, {5.0, 6.0})}));
  const AffineNodes nodes(graph);
  const Tensor center = Tensor::vector(std::vector<double>{1, -1});
  LinearBounds bounds(graph, nodes, ball_around(center, 0.5, Norm::infinity()), {});
  // y_0 = 2 x_0 + 3 x_1 - 5, y_1 = 2 x_0 + 5 x_1 - 6.
  const std::vector<double> low =
      bounds.lower(graph.outputs()[0], std::vector<double>{1, 0, 1, -1});
  EXPECT_NEAR(low[0], -6 - 2.5, 1e-12);
  EXPECT_LE(low[0], -8.5);
  EXPECT_NEAR(low[1], 3 - 1, 1e-12);
  EXPECT_LE(low[1], 2);
}

// relu(x) - x on [-1, 3]: below by relu(x) >= x, above by the chord, where intervals say [-3, 4].
TEST(LinearBounds, TriangleOfRelu) {
  GraphMaker m;
  const ValueId x = m.input({1, 1});
  const Graph graph = m.finish(m.add("Sub", {m.add("Relu", {x}), x}));
  const AffineNodes nodes(graph);
  Domain domain;
  domain.box = Box{Tensor::vector(std::vector<double>{-1}), Tensor::vector(std::vector<double>{3})};
  LinearBounds bounds(graph, nodes, domain, {});
  const std::vector<double> low = bounds.lower(graph.outputs()[0], std::vector<double>{1, -1});
  EXPECT_NEAR(low[0], 0, 1e-12);
  EXPECT_NEAR(-low[1], 1, 1e-12);
}

// relu(x) - x/2 on [-2, 1.9] is at least 0, by the line x/2 alone: between both sides of the kink.
TEST(LinearBounds, LinesAreChosen) {
  GraphMaker m;
  const ValueId x = m.input({1, 1});
  const ValueId half = m.add("Mul", {x, m.weights({1}, {0.5})});
  const Graph graph = m.finish(m.add("Sub", {m.add("Relu", {x}), half}));
  const AffineNodes nodes(graph);
  Domain domain;
  domain.box =
      Box{Tensor::vector(std::vector<double>{-2}), Tensor::vector(std::vector<double>{1.9})};
  LinearBounds bounds(graph, nodes, domain, {});
  const ValueId out = graph.outputs()[0];
  EXPECT_NEAR(bounds.lower(out, std::vector<double>{1})[0], -0.95, 1e-9);
  const auto raised = [&](double enough, int steps) {
    return bounds.raised(out, std::vector<double>{1}, std::vector<double>{enough}, steps)[0];
  };
  EXPECT_NEAR(raised(kInf, 60), 0, 0.02);
  EXPECT_LE(raised(kInf, 60), 0);
  EXPECT_LT(raised(-0.9, 60), -0.001);  // not further than asked for
  EXPECT_GT(raised(-0.9, 60), -0.9);
}

TEST(LinearBounds, ChosenLinesHoldEverySample) {
  for (std::uint64_t seed = 0; seed < 14; ++seed) {
    const Graph graph = mixed_network(seed);
    Rng rng(seed);
    const Domain domain = ball_around(flat_point(graph, rng), 0.3, Norm(seed % 2 == 0 ? 2 : kInf));
    const AffineNodes nodes(graph);
    LinearBounds bounds(graph, nodes, domain, {});
    const ValueId out = graph.outputs()[0];
    const Tensor rows = random_tensor(rng, {5, 3}, -1, 1);
    const std::vector<double> plain = bounds.lower(out, rows.doubles());
    const std::vector<double> more =
        bounds.raised(out, rows.doubles(), std::vector<double>(5, kInf), 15);
    double gained = 0;
    for (std::size_t r = 0; r < more.size(); ++r) {
      EXPECT_GE(more[r], plain[r]);
      gained += more[r] - plain[r];
    }
    EXPECT_GT(gained, 0) << seed;
    for (int s = 0; s < 40; ++s) {
      const std::vector<Interval> y = output_at(graph, inside(domain, rng));
      for (std::size_t r = 0; r < more.size(); ++r) {
        Interval sum = point(0);
        for (std::size_t e = 0; e < 3; ++e) sum += rows.doubles()[3 * r + e] * y[e];
        ASSERT_LE(more[r], sum.hi) << seed << " row " << r;
      }
    }
  }
}

TEST(LinearBounds, StoppedOrWithoutWorkTheyStillHold) {
  const Graph graph = attention_graph({.seed = 3});
  Rng rng(3);
  const Tensor center = flat_point(graph, rng);
  const AffineNodes nodes(graph);
  const Domain domain = ball_around(center, 0.05, Norm(2));
  LinearBounds full(graph, nodes, domain, {});
  LinearBounds stopped(graph, nodes, domain, {.stop = [] { return true; }});
  LinearBounds poor(graph, nodes, domain, {.most_work = 0});
  std::vector<double> row(12);
  row[0] = 1;
  const ValueId out = graph.outputs()[0];
  const double best = full.lower(out, row)[0];
  EXPECT_LE(stopped.lower(out, row)[0], best);
  EXPECT_LE(poor.lower(out, row)[0], best);
  const AffineNodes few(graph, 10);
  EXPECT_FALSE(few.usable());
}

// Products are affine in each factor, not in both.
TEST(AffineNodes, SeeWhatIsAffineTogether) {
  GraphMaker m;
  const ValueId x = m.input({1, 3});
  const ValueId y = m.input({1, 3});
  const ValueId sum = m.add("Add", {x, y});
  const ValueId product = m.add("Mul", {sum, y});
  const ValueId twice = m.add("Mul", {product, m.weights({1}, {2.0})});
  const ValueId quotient = m.add("Div", {m.weights({1}, {1.0}), m.add("Exp", {twice})});
  const Graph graph = m.finish(quotient);
  const AffineNodes nodes(graph);
  std::vector<std::string> affine;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    if (nodes.at(n) != nullptr) affine.emplace_back(graph.nodes()[n].op->name());
  }
  EXPECT_EQ(affine, (std::vector<std::string>{"Add", "Mul"}));
  EXPECT_EQ(nodes.at(1), nullptr);
  EXPECT_NE(nodes.at(2), nullptr);
}

}  // namespace
}  // namespace lipscope

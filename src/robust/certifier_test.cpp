// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "base/rounding.h"
#include "base/rounding_sums.h"
#include "bounds/boxes.h"
#include "estimate/jacobian_norm.h"
#include "lipscope/error.h"
#include "lipscope/evaluate.h"
#include "lipscope/robustness.h"
#include "net/nets_for_test.h"
#include "robust/ball_ranges.h"
#include "robust/logit_ranges.h"
#include "robust/margin_bounds.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;

const auto kNever = [] { return false; };

Graph linear_classifier(Index in, const std::vector<double>& rows) {
  const Index out = std::ssize(rows) / in;
  std::vector<double> turned(rows.size());
  for (Index i = 0; i < out; ++i) {
    for (Index j = 0; j < in; ++j)
      turned[static_cast<std::size_t>(j * out + i)] = rows[static_cast<std::size_t>(i * in + j)];
  }
  GraphMaker m;
  return m.finish(m.add("MatMul", {m.input({1, in}), m.weights({in, out}, turned)}));
}

Graph random_classifier(Rng& rng, Index in, Index width, int hidden, Index classes,
                        const std::string& activation = "Relu") {
  GraphMaker m;
  ValueId x = m.input({1, in});
  Index n = in;
  for (int k = 0; k < hidden; ++k) {
    x = m.add(activation, {m.add("Gemm", {x, m.weights(random_tensor(rng, {n, width}, -1, 1)),
                                          m.weights(random_tensor(rng, {width}, -1, 1))})});
    n = width;
  }
  return m.finish(m.add("Gemm", {x, m.weights(random_tensor(rng, {n, classes}, -1, 1)),
                                 m.weights(random_tensor(rng, {classes}, -1, 1))}));
}

std::vector<double> logits_at(const Graph& graph, const std::vector<double>& x) {
  const std::vector<Tensor> in = split_inputs(graph, x);
  const Tensor f = evaluate(graph, in)[0];
  return {f.doubles().begin(), f.doubles().end()};
}

Index class_at(const Graph& graph, const std::vector<double>& x) {
  const std::vector<double> f = logits_at(graph, x);
  return std::ranges::max_element(f) - f.begin();
}

std::vector<double> random_point(Rng& rng, Index size, double reach = 1) {
  std::uniform_real_distribution<double> uniform(-reach, reach);
  std::vector<double> x(static_cast<std::size_t>(size));
  for (double& e : x) e = uniform(rng);
  return x;
}

Decision decide_one(Certifier& certifier, const std::vector<double>& x, Index label) {
  certifier.find_constants(std::chrono::seconds(1), {});
  return certifier.decide(x, std::vector{label})[0];
}

// With an attack and a local search, which throws where it exceeds the attack.
Decision decide_fully(Certifier& certifier, const std::vector<double>& x, Index label) {
  std::vector<Decision> found{decide_one(certifier, x, label)};
  const std::vector<Index> labels{label};
  certifier.attack(x, labels, found, kNever);
  certifier.improve(x, found[0], kNever);
  return found[0];
}

TEST(Certifier, PairsOfALinearClassifier) {
  const Graph graph = linear_classifier(2, {1, 0, 0.875, 0, 0, 1});
  const std::vector<double> x{1, 0};
  // Margins 1/8 and 1; their rows (1/8, 0) and (1, -1).
  const std::pair<double, double> cases[] = {{2, std::sqrt(0.5)}, {kInf, 0.5}, {1, 1}};
  for (const auto& [p, radius] : cases) {
    Certifier certifier(graph, {.norm = Norm(p)});
    const Decision found = decide_one(certifier, x, 0);
    EXPECT_TRUE(found.certain);
    EXPECT_EQ(found.predicted, 0);
    EXPECT_LE(found.radius, radius * (1 + 1e-15)) << p;
    EXPECT_NEAR(found.radius, radius, 1e-9) << p;
    EXPECT_EQ(found.method, "global-constants");
  }
}

TEST(Certifier, FactorsOfTheNormsAreNotExchanged) {
  const Graph graph = linear_classifier(1, {1, -1});
  for (const double p : {1.0, 2.0, kInf}) {
    Certifier certifier(graph, {.norm = Norm(p)});
    const Decision found = decide_one(certifier, {1.0}, 0);
    EXPECT_LT(found.radius, 1) << p;
    EXPECT_NEAR(found.radius, 1, 1e-9) << p;
  }
}

// Thirty classes are more pairs than are looked at one by one.
TEST(Certifier, ManyClassesShareOneConstant) {
  Rng rng(3);
  const Graph graph = random_classifier(rng, 3, 5, 1, 30);
  Certifier certifier(graph, {.norm = Norm::infinity()});
  const std::vector<double> x = random_point(rng, 3);
  const Decision found = decide_one(certifier, x, class_at(graph, x));
  EXPECT_EQ(certifier.constants().upper.size(), 435U);
  EXPECT_GT(found.radius, 0);
  for (int t = 0; t < 300; ++t) {
    std::vector<double> y = random_point(rng, 3, found.radius);
    for (std::size_t j = 0; j < y.size(); ++j) y[j] += x[j];
    EXPECT_EQ(class_at(graph, y), found.predicted);
  }
}

TEST(Certifier, TiesAndWrongPredictionsHaveNoRadius) {
  const Graph graph = linear_classifier(2, {1, 0, 0, 1});
  Certifier certifier(graph, {.norm = Norm(2)});
  const Decision tie = decide_one(certifier, {0.5, 0.5}, 0);
  EXPECT_FALSE(tie.certain);
  EXPECT_EQ(tie.radius, 0);
  const Decision wrong = certifier.decide(std::vector{1.0, 0.0}, std::vector<Index>{1})[0];
  EXPECT_EQ(wrong.predicted, 0);
  EXPECT_EQ(wrong.radius, 0);
}

// Beyond it a logit is no number, and no class the largest; a later operator does not mend that.
TEST(Certifier, NoRadiusReachesWhereTheNetworkHasNoValue) {
  struct {
    const char* op;
    double start, edge;  // of the second entry, and how far it is from having no value
    bool cut;
  } const cases[] = {{"Sqrt", 0.01, 0.01, false}, {"Log", 1e-3, 1e-3, false},
                     {"Asin", 0.9, 0.1, false},   {"Sqrt", 0.01, 0.01, true},
                     {"Log", 1e-3, 1e-3, true},   {"Reciprocal", 0.25, 0.25, true}};
  for (const auto& [op, start, edge, cut] : cases) {
    for (const Norm& norm : {Norm(2), Norm::infinity()}) {
      GraphMaker m;
      const ValueId inner = m.add(op, {m.input({1, 2})});
      const ValueId cut_off = cut ? m.add("Tanh", {inner}) : inner;
      const Graph graph = m.finish(m.add("Add", {cut_off, m.weights({2}, {9, -9})}));
      Certifier certifier(graph, {.norm = norm});
      const std::vector<double> x{0.5, start};
      Decision found = certifier.decide(x, std::vector<Index>{0})[0];
      EXPECT_TRUE(found.certain) << op;
      certifier.improve(x, found, kNever);
      EXPECT_LE(found.radius, edge) << op;
      EXPECT_GT(found.radius, 0.5 * edge) << op << (cut ? " cut off" : "");
    }
  }
}

// The same for what has no range to look at, takes integers, or divides by what it computes itself.
TEST(Certifier, NoRadiusReachesWhereRowsPowersOrUnknownRangesHaveNoValue) {
  using Inner = std::function<ValueId(GraphMaker&, ValueId)>;
  const Inner layer_norm = [](GraphMaker& m, ValueId x) {
    return m.add("LayerNormalization", {x, m.weights({2}, {1, 1})}, {{"epsilon", 0.0}}, 17);
  };
  const Inner power = [](GraphMaker& m, ValueId x) { return m.add("Pow", {x, m.integers({-1})}); };
  const Inner unknown = [](GraphMaker& m, ValueId x) {
    return m.add("Sqrt", {m.add("LRN", {x}, {{"size", Index{1}}})});
  };
  for (const Inner& inner : {layer_norm, power, unknown}) {
    for (const Norm& norm : {Norm(2), Norm::infinity()}) {
      GraphMaker m;
      const ValueId x = m.input({1, 2});
      const ValueId cut = m.add("Tanh", {inner(m, x)});
      const Graph graph = m.finish(m.add("Add", {cut, m.weights({2}, {9, -9})}));
      Certifier certifier(graph, {.norm = norm});
      const std::vector<double> at{0.75, 0.25};
      Decision found = certifier.decide(at, std::vector<Index>{0})[0];
      certifier.improve(at, found, kNever);
      EXPECT_LE(found.radius, 0.36);
      Decision tried = certifier.decide(at, std::vector<Index>{0})[0];
      EXPECT_FALSE(tried.certain && certifier.prove(at, 0.5, BallDepth::kWhole, tried, kNever));
    }
  }
}

TEST(Certifier, OneLogitIsNoClassifier) {
  EXPECT_THROW(Certifier(linear_classifier(2, {1, 0}), {}), Error);
}

// Every radius holds at random points of the sphere, is at most the attack's, and local ones are at
// least the global ones.
TEST(Certifier, RadiiOfRandomNetworks) {
  Rng rng(7);
  const char* kinds[] = {"Relu", "LeakyRelu", "Tanh", "Sigmoid", "Abs"};
  double gained = 0;
  for (int round = 0; round < 60; ++round) {
    const Index in = 1 + static_cast<Index>(rng() % 4), classes = 2 + static_cast<Index>(rng() % 3);
    const Graph graph = random_classifier(rng, in, 6, 1 + static_cast<int>(rng() % 2), classes,
                                          kinds[rng() % std::size(kinds)]);
    const double p = std::vector<double>{1, 2, 3, kInf}[rng() % 4];
    Certifier certifier(graph, {.norm = Norm(p), .parts = 60});
    certifier.find_constants(std::chrono::milliseconds(20), {});
    const std::vector<double> x = random_point(rng, in);
    const std::vector<Index> label{class_at(graph, x)};
    std::vector<Decision> found = certifier.decide(x, label);
    if (!found[0].certain) continue;
    const double global = found[0].radius;
    certifier.attack(x, label, found, kNever);
    certifier.improve(x, found[0], kNever);
    EXPECT_GE(found[0].radius, global);
    gained += found[0].radius > 1.05 * global ? 1 : 0;
    EXPECT_LE(found[0].radius, found[0].attack_radius.value_or(kInf));
    const double reach = std::isfinite(found[0].radius) ? found[0].radius : 100;
    for (int t = 0; t < 100; ++t) {
      std::vector<double> step = random_point(rng, in);
      const double length = vector_norm(step, Norm(p));
      std::vector<double> y = x;
      for (std::size_t j = 0; j < y.size(); ++j) y[j] += step[j] / length * reach * (1 - 1e-9);
      EXPECT_EQ(class_at(graph, y), label[0]) << round << " norm " << p;
    }
  }
  EXPECT_GT(gained, 20);
}

// On the plane a fine net of directions finds the distance to the nearest other class.
TEST(Certifier, LocalRadiiOnThePlaneAreNearlyExact) {
  Rng rng(11);
  int tight = 0, cases = 0;
  for (int round = 0; round < 12; ++round) {
    const Graph graph = random_classifier(rng, 2, 8, 2, 3);
    const std::vector<double> x = random_point(rng, 2);
    const std::vector<Index> label{class_at(graph, x)};
    Certifier certifier(graph, {.norm = Norm(2), .parts = 500});
    std::vector<Decision> found = certifier.decide(x, label);
    certifier.attack(x, label, found, kNever);
    if (!found[0].attack_radius) continue;
    certifier.improve(x, found[0], kNever);
    constexpr int kAngles = 400, kSteps = 80;
    const double top = 1.2 * *found[0].attack_radius;
    std::vector<double> points;
    for (int a = 0; a < kAngles; ++a) {
      for (int t = 1; t <= kSteps; ++t) {
        const double angle = 2 * M_PI * a / kAngles, away = top * t / kSteps;
        points.push_back(x[0] + away * std::cos(angle));
        points.push_back(x[1] + away * std::sin(angle));
      }
    }
    const Tensor f =
        evaluate(graph, std::vector{Tensor(ElementType::kFloat64, {kAngles * kSteps, 2}, points)},
                 kAngles * kSteps)[0];
    double nearest = kInf;
    for (Index k = 0; k < kAngles * kSteps; ++k) {
      const auto row = f.doubles().subspan(static_cast<std::size_t>(3 * k), 3);
      if (std::ranges::max_element(row) - row.begin() != label[0])
        nearest = std::min(nearest, top * static_cast<double>(k % kSteps + 1) / kSteps);
    }
    ++cases;
    EXPECT_LE(found[0].radius, nearest);
    tight += found[0].radius > 0.8 * nearest ? 1 : 0;
    EXPECT_LT(*found[0].attack_radius, 1.1 * nearest) << round;
  }
  EXPECT_GE(cases, 6);
  EXPECT_GE(4 * tight, 3 * cases);
}

// Products of what varies, so that it is no chain of layers; maxima over windows on request.
Graph gated_classifier(Rng& rng, bool pool) {
  GraphMaker m;
  const ValueId x = m.input({1, 1, 8});
  ValueId h = m.add("Relu", {m.add("Conv", {x, m.weights(random_tensor(rng, {3, 1, 3}, -1, 1)),
                                            m.weights(random_tensor(rng, {3}, -1, 1))})});
  if (pool) {
    h = m.add("MaxPool", {h},
              {{"kernel_shape", std::vector<Index>{2}}, {"strides", std::vector<Index>{2}}});
  }
  h = m.add("Mul", {h, m.add("Sigmoid", {h})});
  h = m.add("Flatten", {h});
  const Index n = m.shape(h)[1];
  return m.finish(m.add("Gemm", {h, m.weights(random_tensor(rng, {n, 3}, -1, 1)),
                                 m.weights(random_tensor(rng, {3}, -1, 1))}));
}

TEST(Certifier, LocalRadiiOfGraphsThatAreNoChain) {
  Rng rng(41);
  int by_lines = 0;
  for (int net = 0; net < 12; ++net) {
    const Graph graph = gated_classifier(rng, net % 2 == 0);
    for (const double p : {1.0, 2.0, 3.0, kInf}) {
      Certifier certifier(graph, {.norm = Norm(p)});
      ASSERT_FALSE(certifier.local_obstacle().empty());
      const std::vector<double> x = random_point(rng, 8, 2);
      const Decision d = decide_fully(certifier, x, class_at(graph, x));
      by_lines += d.method.starts_with("linear-bounds") ? 1 : 0;
      EXPECT_GT(d.radius, 0);
      for (int t = 0; t < 200; ++t) {
        std::vector<double> step = random_point(rng, 8);
        for (double& e : step) e = t % 2 == 0 ? e : std::pow(e, 9);
        const double size = pnorm_up(step, p);
        std::vector<double> y = x;
        for (std::size_t j = 0; j < y.size(); ++j) y[j] += step[j] * d.radius / size * (1 - 1e-9);
        ASSERT_EQ(class_at(graph, y), d.predicted) << net << " " << p;
      }
    }
  }
  EXPECT_GT(by_lines, 40);  // of 48
}

// Products of two moving vectors, with a way around the functions before them.
Graph residual_gates(Rng& rng) {
  GraphMaker m;
  const auto random = [&](Shape shape) { return m.weights(random_tensor(rng, std::move(shape))); };
  const ValueId x = m.input({1, 3});
  const ValueId inner = m.add("Relu", {m.add("Gemm", {x, random({3, 8}), random({8})})});
  const ValueId sum = m.add("Add", {x, m.add("MatMul", {inner, random({8, 3})})});
  const ValueId outer = m.add("Relu", {m.add("Gemm", {sum, random({3, 8}), random({8})})});
  const ValueId scale = m.weights({1}, {0.05});
  const ValueId gate = m.add("Mul", {m.add("Mul", {sum, m.add("Sigmoid", {sum})}), scale});
  return m.finish(m.add("Add", {m.add("Gemm", {outer, random({8, 3}), random({3})}), gate}));
}

TEST(Certifier, CasesOfGraphsThatAreNoChain) {
  Rng rng(47);
  int larger = 0, by_cases = 0;
  for (int net = 0; net < 12; ++net) {
    const Graph graph = residual_gates(rng);
    const double p = std::vector<double>{1, 2, kInf}[rng() % 3];
    const std::vector<double> x = random_point(rng, 3);
    const Index label = class_at(graph, x);
    Certifier whole(graph, {.norm = Norm(p), .parts = 0}),
        cases(graph, {.norm = Norm(p), .parts = 200});
    ASSERT_FALSE(cases.local_obstacle().empty());
    const Decision without = decide_fully(whole, x, label), with = decide_fully(cases, x, label);
    EXPECT_GE(with.radius, without.radius);
    EXPECT_LE(with.radius, with.attack_radius.value_or(kInf));
    EXPECT_NE(without.method, "linear-bounds-by-cases");
    larger += with.radius > 1.05 * without.radius ? 1 : 0;
    by_cases += with.method == "linear-bounds-by-cases" ? 1 : 0;
    for (int t = 0; t < 300; ++t) {
      std::vector<double> y = random_point(rng, 3);
      const double size = pnorm_up(y, p);
      for (std::size_t j = 0; j < y.size(); ++j)
        y[j] = x[j] + y[j] * with.radius / size * (1 - 1e-9);
      ASSERT_EQ(class_at(graph, y), with.predicted) << net << " " << p;
    }
  }
  EXPECT_GE(larger, 4);
  EXPECT_GE(by_cases, larger);
}

// 25 million weights as dense layers: proofs are about what is left of it on the ball.
Graph picture_classifier(Rng& rng) {
  testing_support::GraphMaker m;
  const auto random = [&](Shape shape) { return m.weights(random_tensor(rng, std::move(shape))); };
  ValueId x = m.input({1, 1, 72, 72});
  x = m.add("Relu", {m.add("Conv", {x, random({1, 1, 3, 3}), random({1})})});
  x = m.add("Flatten", {x});
  x = m.add("Relu", {m.add("Gemm", {x, random({4900, 6}), random({6})})});
  return m.finish(m.add("Gemm", {x, random({6, 3}), random({3})}));
}

TEST(Certifier, LocalRadiiOfLargePictures) {
  Rng rng(44);
  const Graph graph = picture_classifier(rng);
  Certifier certifier(graph, {.norm = Norm::infinity(), .parts = 0});
  EXPECT_TRUE(certifier.local_obstacle().empty());
  const std::vector<double> x = random_point(rng, 5184, 2);
  const Decision d = decide_fully(certifier, x, class_at(graph, x));
  EXPECT_EQ(d.method, "linear-bounds");
  ASSERT_TRUE(d.attack_radius);
  EXPECT_GT(d.radius, 0.3 * *d.attack_radius);
  for (int t = 0; t < 20; ++t) {
    std::vector<double> y = x;
    for (double& e : y) e += (rng() % 2 == 0 ? 1 : -1) * d.radius * (1 - 1e-9);
    ASSERT_EQ(class_at(graph, y), d.predicted);
  }
}

TEST(BallRanges, HoldEveryValueOnTheBallAndAreNarrower) {
  Rng rng(43);
  for (int net = 0; net < 10; ++net) {
    const Graph graph = gated_classifier(rng, net % 2 == 0);
    for (const double p : {1.0, 2.0, 3.0, kInf}) {
      const BallRanges ranges(graph, Norm(p));
      const std::vector<double> x = random_point(rng, 8, 2);
      const auto boxes_at = [&](double radius) {
        Domain domain;
        domain.ball = Ball{Tensor::vector(x), radius, Norm(p)};
        return ValueBoxes(graph, input_boxes(graph, domain));
      };
      ValueBoxes ball = boxes_at(0.3), center = boxes_at(0), plain = boxes_at(0.3);
      ranges.narrow(ball, center, 0.3);
      double width = 0, plain_width = 0;
      const ValueId first = graph.nodes()[0].outputs[0];
      for (std::size_t i = 0; i < ball.at(first).lower.doubles().size(); ++i) {
        width += ball.at(first).upper.doubles()[i] - ball.at(first).lower.doubles()[i];
        plain_width += plain.at(first).upper.doubles()[i] - plain.at(first).lower.doubles()[i];
      }
      EXPECT_LE(width, (p < 3 ? 0.95 : 1 + 1e-12) * plain_width) << p;
      for (int t = 0; t < 100; ++t) {
        std::vector<double> y = random_point(rng, 8);
        const double size = pnorm_up(y, p);
        for (std::size_t j = 0; j < y.size(); ++j) y[j] = x[j] + y[j] * 0.3 / size * (1 - 1e-9);
        ValueBoxes here(graph, [&] {
          std::vector<Box> boxes;
          for (const Tensor& tensor : split_inputs(graph, y)) boxes.push_back({tensor, tensor});
          return boxes;
        }());
        for (const Node& node : graph.nodes()) {
          const Box &seen = here.at(node.outputs[0]), &range = ball.at(node.outputs[0]);
          for (std::size_t i = 0; i < seen.lower.doubles().size(); ++i) {
            ASSERT_GE(seen.upper.doubles()[i], range.lower.doubles()[i]);
            ASSERT_LE(seen.lower.doubles()[i], range.upper.doubles()[i]);
          }
        }
      }
    }
  }
}

TEST(Certifier, ErrorsOfAnotherArithmeticShrinkRadii) {
  const Graph graph = linear_classifier(1, {1, -1});
  const auto needed = [](std::span<const double>, double, Index) {
    return std::vector<double>(2, 0.5);
  };
  Certifier certifier(graph, {.norm = Norm(2), .margins_needed = needed});
  Decision found = decide_one(certifier, {1.0}, 0);
  EXPECT_NEAR(found.radius, 0.75, 1e-9);
  certifier.improve(std::vector{1.0}, found, kNever);
  EXPECT_LE(found.radius, 0.75);
}

TEST(LogitRanges, HoldTheLogitsInHigherPrecision) {
  Rng rng(5);
  for (const char* kind : {"Relu", "LeakyRelu", "Tanh"}) {
    const Graph graph = random_classifier(rng, 20, 30, 2, 4, kind);
    const auto net = testing_support::layered_net_of(graph);
    ASSERT_TRUE(net) << net.reason();
    std::vector<double> points;
    for (int s = 0; s < 40; ++s) {
      const auto x = random_point(rng, 20, s % 3 == 0 ? 1e6 : 1);
      points.insert(points.end(), x.begin(), x.end());
    }
    const auto fast = LogitRanges(graph, &*net).of(points),
               slow = LogitRanges(graph, nullptr).of(points);
    ASSERT_EQ(fast.size(), slow.size());
    for (std::size_t e = 0; e < fast.size(); ++e) {
      // Both hold the same number.
      EXPECT_LE(fast[e].lo, slow[e].hi);
      EXPECT_GE(fast[e].hi, slow[e].lo);
      EXPECT_LT(fast[e].hi - fast[e].lo, 1e-3);
    }
    for (std::size_t s = 0; s < 40 && kind[0] == 'R'; ++s) {
      std::vector<long double> v(points.begin() + static_cast<Index>(20 * s),
                                 points.begin() + static_cast<Index>(20 * s + 20));
      for (std::size_t k = 0; k < net->layers.size(); ++k) {
        const DenseLayer& layer = net->layers[k];
        std::vector<long double> next;
        for (Index i = 0; i < layer.out; ++i) {
          long double z = layer.bias[static_cast<std::size_t>(i)].lo;
          for (Index j = 0; j < layer.in; ++j)
            z += static_cast<long double>(layer.row(i)[j]) * v[static_cast<std::size_t>(j)];
          next.push_back(k < net->hidden() && z < 0 ? 0 : z);
        }
        v = next;
      }
      for (std::size_t i = 0; i < v.size(); ++i) {
        EXPECT_GE(v[i], fast[4 * s + i].lo - 1e-18L * std::fabs(v[i]));
        EXPECT_LE(v[i], fast[4 * s + i].hi + 1e-18L * std::fabs(v[i]));
      }
    }
  }
}

// Bounds of parts hold at every point of the ball with those signs, whatever slopes and multipliers
// are given.
TEST(MarginBounds, HoldOnPartsForAnySlopesAndMultipliers) {
  Rng rng(13);
  int checked = 0;
  for (int round = 0; round < 40; ++round) {
    const Index in = 2 + static_cast<Index>(rng() % 3);
    const Graph graph = random_classifier(rng, in, 6, 2, 3, round % 2 == 0 ? "Relu" : "LeakyRelu");
    const auto net = testing_support::layered_net_of(graph);
    const std::vector<double> x = random_point(rng, in);
    const double p = std::vector<double>{1, 2, 2.5, kInf}[rng() % 4];
    const double radius = 0.3;
    const Index winner = class_at(graph, x), rival = (winner + 1) % 3;
    const MarginBounds bounds(*net, {Tensor::vector(x), radius, Norm(p)}, winner);
    ASSERT_TRUE(bounds.usable());
    MarginBounds::Part part = bounds.whole(rival);
    std::vector<std::pair<double, std::vector<double>>>
        samples;  // margin, values before unstable units
    std::uniform_real_distribution<float> uniform(0, 1);
    for (std::size_t o = 0; o < part.signs.size(); ++o) {
      part.signs[o] =
          static_cast<std::int8_t>(static_cast<int>(rng() % 4 == 0) * (rng() % 2 ? 1 : -1));
      part.mixes[o] = 2 * uniform(rng) - 0.5F;  // outside, too
      part.multipliers[o] = uniform(rng);
    }
    bounds.raise(std::span(&part, 1), std::vector<double>(3, kInf), round % 3);
    for (int t = 0; t < 200; ++t) {
      std::vector<double> step = random_point(rng, in);
      const double length = vector_norm(step, Norm(p));
      std::vector<double> y = x;
      for (std::size_t j = 0; j < y.size(); ++j)
        y[j] += step[j] / length * radius * (1 - 1e-9) * (t % 2 == 0 ? 1 : 0.5);
      if (!bounds.has_signs(part, y)) continue;
      const std::vector<double> f = logits_at(graph, y);
      ++checked;
      EXPECT_GE(f[static_cast<std::size_t>(winner)] - f[static_cast<std::size_t>(rival)],
                part.bound - 1e-12);
    }
  }
  EXPECT_GT(checked, 500);
}

}  // namespace
}  // namespace lipscope

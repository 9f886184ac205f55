// SPDX-License-Identifier: Apache-2.0
#include "net/problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/checkpoint.h"
#include "estimate/chain_for_test.h"
#include "estimate/counted_for_test.h"
#include "lipscope/robustness.h"
#include "net/trim.h"
#include "pieces/pieces_for_test.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;
using testing_support::random_pieces;

Domain ball_around(const Tensor& center, double radius) {
  return {.ball = Ball{center, radius, Norm(2)}};
}

// What reading the graph on the boxes of the domain gives.
Expected<UnitNetwork> read_on(const Graph& graph, const Domain& domain) {
  ValueBoxes boxes(graph, input_boxes(graph, domain));
  auto net = read_unit_network(graph, [&](ValueId id) -> const Box& { return boxes.at(id); });
  if (net) trim(*net);
  return net;
}

void expect_same(const UnitNetwork& a, const UnitNetwork& b) {
  EXPECT_EQ(a.exponent, b.exponent);
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (std::size_t k = 0; k < a.nodes.size(); ++k) {
    EXPECT_EQ(a.nodes[k].size, b.nodes[k].size);
    EXPECT_EQ(a.nodes[k].slopes, b.nodes[k].slopes);
    EXPECT_EQ(a.nodes[k].below, b.nodes[k].below);
    ASSERT_EQ(a.nodes[k].edges.size(), b.nodes[k].edges.size());
    for (std::size_t e = 0; e < a.nodes[k].edges.size(); ++e) {
      EXPECT_EQ(a.nodes[k].edges[e].from, b.nodes[k].edges[e].from);
      EXPECT_EQ(a.nodes[k].edges[e].map.weights, b.nodes[k].edges[e].map.weights);
    }
  }
}

TEST(Problem, SlopesOnADomainAreThoseOfReadingThere) {
  Rng rng(4);
  int once = 0, twice = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const Graph graph = trial % 4 == 0
                            ? testing_support::random_residual(rng)
                            : random_pieces(rng, 4, {6, 5, 4}, 2, testing_support::kAllKinks);
    const Index inputs = input_size(graph);
    const double radius = trial % 5 == 0 ? 1e-3 : 0.5;
    const Query query{.graph = &graph,
                      .domain = trial % 3 == 0
                                    ? Domain{}
                                    : ball_around(random_tensor(rng, {inputs}, -1, 1), radius)};
    Problem problem(query);
    const std::size_t before = networks_read();
    const Expected<UnitNetwork>& units = problem.units();
    (networks_read() - before == 1 ? once : twice) += 1;
    const auto expected = read_on(graph, query.domain);
    ASSERT_EQ(static_cast<bool>(units), static_cast<bool>(expected)) << expected.reason();
    EXPECT_EQ(units.reason(), expected.reason());
    if (units) expect_same(*units, *expected);
  }
  EXPECT_GT(once, 250);
  EXPECT_GT(twice, 10);  // all units of a layer have one slope
}

TEST(Problem, SlopesOfMaximaOverSeveralRounds) {
  Rng rng(6);
  for (int trial = 0; trial < 40; ++trial) {
    GraphMaker m;
    const ValueId x = m.input({1, 1, 20});
    const ValueId pooled =
        m.add("MaxPool", {x},
              {{"kernel_shape", std::vector<Index>{5}}, {"strides", std::vector<Index>{5}}});
    const Graph graph = m.finish(m.add(
        "MatMul", {m.add("Flatten", {pooled}), m.weights(random_tensor(rng, {4, 2}, -1, 1))}));
    const Query query{.graph = &graph, .domain = ball_around(random_tensor(rng, {20}, -1, 1), 0.2)};
    Problem problem(query);
    const std::size_t before = networks_read();
    ASSERT_TRUE(problem.units());
    EXPECT_EQ(networks_read(), before + 1);
    expect_same(*problem.units(), *read_on(graph, query.domain));
  }
}

// Ends a run at its n-th checkpoint, counted from 0.
class StopAt final : public Watch {
 public:
  explicit StopAt(int n) : left_(n) { errand().watch = this; }
  ~StopAt() { errand().watch = nullptr; }
  StopAt(const StopAt&) = delete;
  StopAt& operator=(const StopAt&) = delete;
  void look(const Errand&) const override {
    if (left_-- == 0) throw Stopped{StopCause::kInterrupt};
  }

 private:
  mutable int left_;
};

// A run that is stopped goes on with the Problem to say what it has: wherever the stop came, what
// is asked for again is whole.
TEST(Problem, IsWholeAfterAStopAtAnyPlace) {
  Rng rng(11);
  int stops = 0;
  for (int trial = 0; trial < 12; ++trial) {
    const Graph graph = trial % 3 == 0
                            ? testing_support::random_residual(rng)
                            : random_pieces(rng, 4, {6, 5, 4}, 2, testing_support::kAllKinks);
    const Domain domain = trial % 2 == 0
                              ? Domain{}
                              : ball_around(random_tensor(rng, {input_size(graph)}, -1, 1), 0.5);
    const Query query{.graph = &graph, .domain = domain};
    ValueBoxes expected_boxes(graph, input_boxes(graph, domain));
    const auto expected = read_on(graph, domain);
    bool stopped = true;
    for (int place = 0; stopped; ++place) {
      Problem problem(query);
      stopped = false;
      try {
        const StopAt watch(place);
        for (const Node& node : graph.nodes()) static_cast<void>(problem.box(node.outputs[0]));
        static_cast<void>(problem.units());
        static_cast<void>(problem.local_chain());
      } catch (const Stopped&) {
        stopped = true;
        ++stops;
      }
      for (const Node& node : graph.nodes()) {
        const Box &a = problem.box(node.outputs[0]), &b = expected_boxes.at(node.outputs[0]);
        ASSERT_TRUE(std::ranges::equal(a.lower.doubles(), b.lower.doubles())) << place;
        ASSERT_TRUE(std::ranges::equal(a.upper.doubles(), b.upper.doubles())) << place;
      }
      ASSERT_EQ(static_cast<bool>(problem.units()), static_cast<bool>(expected));
      if (expected) expect_same(*problem.units(), *expected);
      ASSERT_EQ(static_cast<bool>(problem.local_chain()),
                static_cast<bool>(Problem(query).local_chain()));
    }
  }
  EXPECT_GT(stops, 100);
}

// x, two layers of ReLUs, and a third or a softmax.
Graph classifier(Index width, bool softmax) {
  Rng rng(9);
  GraphMaker m;
  ValueId x = m.input({1, 5});
  Index n = 5;
  for (const Index next : {width, width, Index{3}}) {
    if (n == width) x = m.add("Relu", {x});
    x = m.add("Gemm", {x, m.weights(random_tensor(rng, {n, next}, -1, 1)),
                       m.weights(random_tensor(rng, {next}, -1, 1))});
    n = next;
  }
  return m.finish(softmax ? m.add("Softmax", {x}) : x);
}

std::size_t readings(const std::function<void()>& work) {
  const std::size_t before = networks_read();
  work();
  return networks_read() - before;
}

TEST(Problem, AQueryReadsItsGraphOnce) {
  const Domain local = ball_around(Tensor::vector({0.1, -0.4, 0.3, 0.2, -0.1}), 0.5);
  const auto ask = [](const Graph& graph, const char* norm, const Domain& domain,
                      const std::vector<std::string>& methods) {
    const Query query{&graph, parse_norms(norm), domain};
    return find_bracket(query, {.time = std::chrono::duration<double>(0.5), .methods = methods},
                        counted());
  };
  const Graph plain = classifier(7, false), squashed = classifier(7, true);
  for (const char* norm : {"2", "inf"}) {
    EXPECT_EQ(readings([&] { (void)ask(plain, norm, {}, {}); }), 1U) << norm;
    EXPECT_EQ(readings([&] { (void)ask(plain, norm, local, {}); }), 1U) << norm;
    // All but lipsdp, which asks for parts of it.
    EXPECT_EQ(readings([&] {
                (void)ask(squashed, norm, local,
                          {"eclipse-fast", "loop-transform", "fast-lip", "gram-l2", "local-lipsdp",
                           "exact-local", "pattern-ascent"});
              }),
              1U)
        << norm;
  }
}

TEST(Problem, ACertifierReadsItsGraphOnce) {
  const Graph graph = classifier(60, false);
  EXPECT_EQ(readings([&] {
              Certifier certifier(graph, {.norm = Norm(2)});
              (void)certifier.find_constants(std::chrono::duration<double>(1), counted());
              const std::vector<double> x{0.3, 0.1, -0.2, 0.5, 0.4};
              const std::vector<Index> label{0};
              auto decisions = certifier.decide(x, label);
              certifier.improve(x, decisions[0], [] { return false; });
            }),
            1U);
}

}  // namespace
}  // namespace lipscope

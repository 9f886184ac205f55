// SPDX-License-Identifier: Apache-2.0
// Random points, the largest norm at them, and where such norms would end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "estimate/counted_for_test.h"
#include "estimate/domain_sampler.h"
#include "estimate/jacobian_norm.h"
#include "lipscope/bound.h"
#include "tests/support/graph_maker.h"

namespace lipscope::estimates {
namespace {

using testing_support::affine;
using testing_support::GraphMaker;
using testing_support::unary;

Tensor filled(std::size_t size, double value) {
  return Tensor::vector(std::vector<double>(size, value));
}
Domain box(std::size_t size, double low, double high) {
  return {.box = Box{filled(size, low), filled(size, high)}, .ball = {}};
}
Domain ball(std::vector<double> center, double radius, double p = 2) {
  return {.box = {}, .ball = Ball{Tensor::vector(std::move(center)), radius, Norm(p)}};
}

Answer ask(const Graph& graph, Domain domain, std::vector<std::string> methods,
           const std::string& norm = "2", std::uint64_t seed = 1) {
  RunContext context;
  context.seed = seed;
  return find_bracket({&graph, parse_norms(norm), std::move(domain)},
                      {.time = std::chrono::seconds(60), .methods = std::move(methods)}, context);
}

const MethodReport& row(const Answer& answer, std::string_view method) {
  return *std::ranges::find(answer.methods, method, &MethodReport::method);
}
double value(const Answer& answer, std::string_view method) {
  const auto& bound = row(answer, method).bound;
  return bound ? bound->value : -1;
}

// The sum of squares: the gradient at x has the length 2 |x|.
Graph squares(Index size) {
  GraphMaker m;
  const ValueId x = m.input({1, size});
  const std::vector<double> ones(static_cast<std::size_t>(size), 1.0);
  return m.finish(m.add("MatMul", {m.add("Mul", {x, x}), m.weights({size, 1}, ones)}));
}

TEST(DomainSampler, UniformInBallsOfAllNorms) {
  GraphMaker m;
  const Graph graph = m.finish(m.add("Relu", {m.input({1, 3})}));
  for (const double p : {1.0, 1.5, 2.0, 4.0, HUGE_VAL}) {
    const Domain domain = ball({1, -2, 0.5}, 0.7, p);
    const DomainSampler sampler(graph, domain);
    std::mt19937_64 rng(1);
    std::vector<double> x(3);
    double volume = 0, first = 0;
    const int count = 20000;
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(sampler.draw(rng, x));
      ASSERT_TRUE(in_domain(domain, x));
      first += (x[0] - 1) / count;
      const std::vector<double> away{x[0] - 1, x[1] + 2, x[2] - 0.5};
      volume += std::pow(vector_norm(away, Norm(p)) / 0.7, 3) / count;
    }
    // The share of the volume inside a uniform point is uniform.
    EXPECT_NEAR(volume, 0.5, 0.01) << p;
    EXPECT_NEAR(first, 0, 0.01) << p;
  }
}

TEST(DomainSampler, StaysInBallAndBox) {
  GraphMaker m;
  const Graph graph = m.finish(m.add("Relu", {m.input({1, 3})}));
  Domain both = ball({0, 0, 0}, 1);
  both.box = Box{filled(3, -0.2), filled(3, 2)};
  const DomainSampler sampler(graph, both);
  std::mt19937_64 rng(1);
  std::vector<double> x(3);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(sampler.draw(rng, x));
    EXPECT_TRUE(in_domain(both, x));
  }
}

TEST(Sampling, LinearMapsAreExact) {
  for (const auto& [norm, exact] : std::vector<std::pair<std::string, double>>{
           {"2", std::sqrt(45.0)}, {"1", 7}, {"inf", 9}, {"1:inf", 5}, {"inf:1", 12}}) {
    const Answer answer = ask(affine(), ball({1, -2}, 0.3), {"sampling", "clever"}, norm);
    EXPECT_NEAR(value(answer, "sampling"), exact, 1e-9) << norm;
    EXPECT_NEAR(value(answer, "clever"), exact, 1e-9) << norm;
    EXPECT_NE(row(answer, "clever").note.find("100 of them end at the same"), std::string::npos);
    EXPECT_EQ(row(answer, "sampling").bound->guarantee, Guarantee::kReal);
    EXPECT_EQ(row(answer, "clever").bound->guarantee, Guarantee::kEstimate);
  }
}

TEST(Sampling, EntriesThatCannotMoveDoNotCount) {
  Domain line = box(2, 0, 1);
  line.box->upper = Tensor::vector({0, 1});  // the first input is 0
  const Answer answer = ask(affine(), line, {"sampling", "clever"});
  EXPECT_NEAR(value(answer, "sampling"), 5, 1e-12);
  EXPECT_NEAR(value(answer, "clever"), 5, 1e-12);
}

TEST(Sampling, AbsoluteValue) {
  EXPECT_NEAR(value(ask(unary("Abs"), ball({0}, 1e-3), {"sampling"}), "sampling"), 1, 1e-12);
  EXPECT_NEAR(value(ask(unary("Abs"), box(1, -1, 3), {"clever"}), "clever"), 1, 1e-12);
}

// relu(x) - relu(-x) = x, and the projection puts points on the kink.
TEST(Sampling, DerivativesAtAKinkAreNotBelieved) {
  GraphMaker m;
  const ValueId x = m.input({1, 1});
  const ValueId a = m.add("Relu", {x}), b = m.add("Relu", {m.add("Neg", {x})});
  const Graph graph = m.finish(m.add("Sub", {a, b}));
  Domain domain = ball({0}, 1);
  domain.box = Box{filled(1, 0), filled(1, 2)};
  EXPECT_NEAR(value(ask(graph, domain, {"sampling"}), "sampling"), 1, 1e-9);
}

TEST(Sampling, ConstantFunction) {
  GraphMaker m;
  const ValueId x = m.input({1, 2});
  const Graph graph = m.finish(m.add("MatMul", {x, m.weights({2, 2}, {0, 0, 0, 0})}));
  const Answer answer = ask(graph, box(2, 0, 1), {"sampling", "clever"});
  EXPECT_EQ(value(answer, "sampling"), 0);
  EXPECT_EQ(value(answer, "clever"), 0);
}

// The largest gradients of the sum of squares are at the corners of a box: shape 3 for three
// inputs; on the surface of a ball: shape 1.
TEST(Clever, FindsTheEndPoint) {
  const double corner = 2 * std::sqrt(3.0);
  const Answer in_box = ask(squares(3), box(3, -1, 1), {"sampling", "clever"});
  EXPECT_NEAR(value(in_box, "clever"), corner, 0.03 * corner);
  EXPECT_LT(value(in_box, "sampling"), corner);
  EXPECT_GE(value(in_box, "clever"), value(in_box, "sampling"));
  EXPECT_NE(row(in_box, "clever").note.find("p = "), std::string::npos)
      << row(in_box, "clever").note;
  const Answer in_ball = ask(squares(3), ball({0, 0, 0}, 1), {"clever"});
  EXPECT_NEAR(value(in_ball, "clever"), 2, 1e-3);
  // One input, steepest inside: maxima pile up at the end point.
  EXPECT_NEAR(value(ask(unary("Tanh"), box(1, -1, 2), {"clever"}), "clever"), 1, 1e-6);
}

TEST(Clever, IsNeverTakenForAProof) {
  const Answer alone = ask(squares(3), box(3, -1, 1), {"sampling", "clever"});
  EXPECT_FALSE(alone.bracket.upper(Guarantee::kReal));
  EXPECT_FALSE(alone.bracket.lower(Guarantee::kProved));
  EXPECT_FALSE(alone.bracket.ratio());
  const Answer beside = ask(squares(3), box(3, -1, 1), {"dag", "layer-product", "clever"});
  const auto proved = beside.bracket.upper(Guarantee::kProved);
  ASSERT_TRUE(proved);
  EXPECT_NE(proved->method, "clever");
  EXPECT_GE(proved->value, 2 * std::sqrt(3.0));
}

// x + 4 relu(x - 5) - 4 relu(x - 5.01): slope 5 where hardly any point falls.
TEST(Clever, GivesWayToAProofThatContradictsIt) {
  GraphMaker m;
  const ValueId x = m.input({1, 1});
  const ValueId h =
      m.add("Relu", {m.add("Gemm", {x, m.weights({1, 2}, {1, 1}), m.weights({2}, {-5, -5.01})})});
  const Graph graph = m.finish(m.add("Add", {x, m.add("MatMul", {h, m.weights({2, 1}, {4, -4})})}));
  const Domain domain = box(1, -4000, 4000);
  const Answer before = ask(graph, domain, {"clever"});
  EXPECT_NEAR(value(before, "clever"), 1, 1e-9);
  const Answer after = ask(graph, domain, {"pattern-ascent", "jacobian-ascent", "clever"});
  ASSERT_GT(after.bracket.lower(Guarantee::kProved)->value, 4);
  EXPECT_EQ(value(after, "clever"), -1);
  EXPECT_NE(row(after, "clever").skipped.find("below the proved lower bound"), std::string::npos);
}

TEST(Clever, SameSeedSameAnswer) {
  const auto once = [](std::uint64_t seed) {
    const Answer answer = ask(squares(2), box(2, -1, 1), {"sampling", "clever"}, "2", seed);
    return std::pair{value(answer, "sampling"), row(answer, "clever").bound->value};
  };
  EXPECT_EQ(once(1), once(1));
  EXPECT_NE(once(1), once(2));
}

TEST(Clever, OnlyWhereThereAreUniformPoints) {
  for (const char* method : {"sampling", "clever"}) {
    const auto why = [&](Domain domain) {
      return row(ask(affine(), std::move(domain), {method}), method).skipped;
    };
    EXPECT_NE(why({}).find("balls and boxes"), std::string::npos);
    EXPECT_NE(why(ball({0, 0}, 0)).find("one point"), std::string::npos);
    EXPECT_NE(why(box(2, 1, 1)).find("one point"), std::string::npos);
    EXPECT_NE(why(box(2, 0, HUGE_VAL)).find("no end"), std::string::npos);
  }
}

TEST(Clever, TakesASmallShareOfTheTime) {
  const Graph graph = squares(40);
  const Query query{&graph, parse_norms("2"), box(40, -1, 1)};
  const Budget budget{.time = std::chrono::seconds(2), .methods = {"sampling", "clever"}};
  const RunContext context = counted();
  const Answer answer = find_bracket(query, budget, context);
  EXPECT_TRUE(row(answer, "sampling").bound);
  EXPECT_LT(context.clock->now(), 1);
}

}  // namespace
}  // namespace lipscope::estimates

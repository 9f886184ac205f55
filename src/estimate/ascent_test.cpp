// SPDX-License-Identifier: Apache-2.0
// The lower side: values of known networks, domains, stopping.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>

#include "estimate/counted_for_test.h"
#include "estimate/quotient.h"
#include "lipscope/bound.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

using testing_support::affine;
using testing_support::GraphMaker;
using testing_support::unary;

Answer jacobian_ascend(const Graph& graph, const std::string& norm, Domain domain = {},
                       double seconds = 20, const std::string& method = "jacobian-ascent") {
  const Query query{&graph, parse_norms(norm), std::move(domain)};
  const Budget budget{.time = std::chrono::duration<double>(seconds), .methods = {method}};
  Answer answer = find_bracket(query, budget, counted());
  if (!answer.witness) return answer;
  EXPECT_TRUE(in_domain(query.domain, answer.witness->x));
  EXPECT_TRUE(in_domain(query.domain, answer.witness->y));
  const double value = answer.bracket.lower(Guarantee::kProved)->value;
  EXPECT_GE(proved_quotient(query, *answer.witness), value);
  EXPECT_LE(proved_quotient(query, *answer.witness), value * (1 + 1e-6));
  return answer;
}

double lower(const Answer& answer, Guarantee at_least = Guarantee::kProved) {
  const auto bound = answer.bracket.lower(at_least);
  return bound ? bound->value : 0;
}

void expect_close_below(double found, double exact, double relative = 1e-9) {
  EXPECT_LE(found, exact * (1 + 1e-14));
  EXPECT_GE(found, exact * (1 - relative));
}

Tensor filled(std::size_t size, double value) {
  return Tensor::vector(std::vector<double>(size, value));
}
Domain box(std::size_t size, double low, double high) {
  return {.box = Box{filled(size, low), filled(size, high)}, .ball = {}};
}
Domain ball(std::vector<double> center, double radius, double p = 2) {
  return {.box = {}, .ball = Ball{Tensor::vector(std::move(center)), radius, Norm(p)}};
}

TEST(JacobianAscent, AffineMapsAreTight) {
  expect_close_below(lower(jacobian_ascend(affine(), "2")), std::sqrt(45.0));
  expect_close_below(lower(jacobian_ascend(affine(), "1")), 7);
  expect_close_below(lower(jacobian_ascend(affine(), "inf")), 9);
  expect_close_below(lower(jacobian_ascend(affine(), "1:inf")), 5);
  expect_close_below(lower(jacobian_ascend(affine(), "2:inf")), std::sqrt(41.0));
  expect_close_below(lower(jacobian_ascend(affine(), "1:2")), 5);
  expect_close_below(lower(jacobian_ascend(affine(), "inf:1")), 12);
  expect_close_below(lower(jacobian_ascend(affine(), "inf", box(2, -1, 1))), 9);
}

TEST(JacobianAscent, WideAffineMapFollowsItsLargestSingularValue) {
  // 3 times a permutation and one entry of 5: the norm is 5 in every p.
  const Index n = 40;
  std::vector<double> entries(static_cast<std::size_t>(n * n));
  for (Index i = 0; i < n; ++i) entries[static_cast<std::size_t>(i * n + (i + 7) % n)] = 3;
  entries[static_cast<std::size_t>(11 * n + 18)] = 5;
  GraphMaker m;
  const ValueId x = m.input({1, n});
  const Graph graph = m.finish(m.add("MatMul", {x, m.weights({n, n}, entries)}));
  for (const char* norm : {"1", "2", "inf"})
    expect_close_below(lower(jacobian_ascend(graph, norm, {}, 1)), 5);
}

TEST(JacobianAscent, AbsoluteValue) {
  expect_close_below(lower(jacobian_ascend(unary("Abs"), "2")), 1);
  // No pair inside the ball sees more than the slope 1, wherever the kink is.
  expect_close_below(lower(jacobian_ascend(unary("Abs"), "2", ball({0}, 1e-3))), 1);
}

TEST(JacobianAscent, BothUnitsActiveAtTheKinkIsNotASlope) {
  GraphMaker m;
  const ValueId x = m.input({1, 1});
  const ValueId a = m.add("Relu", {x}), b = m.add("Relu", {m.add("Neg", {x})});
  expect_close_below(lower(jacobian_ascend(m.finish(m.add("Sub", {a, b})), "2")), 1);
}

TEST(JacobianAscent, FindsTheSteepCell) {
  // relu(x) + 4 relu(x - 5) - 5 relu(x - 5.5): slope 5 on [5, 5.5], at most 1 elsewhere.
  GraphMaker m;
  const ValueId x = m.input({1, 1});
  const ValueId h = m.add(
      "Relu", {m.add("Gemm", {x, m.weights({1, 3}, {1, 1, 1}), m.weights({3}, {0, -5, -5.5})})});
  const Graph graph = m.finish(m.add("MatMul", {h, m.weights({3, 1}, {1, 4, -5})}));
  expect_close_below(lower(jacobian_ascend(graph, "2")), 5);
  expect_close_below(lower(jacobian_ascend(graph, "2", box(1, -1, 4))), 1);
}

TEST(JacobianAscent, ReluOfOrthogonalUnitsReachesAllActive) {
  // Eight units on the coordinates, shifted so that 0 has none active; l2 to a sum: sqrt(8).
  GraphMaker m;
  const ValueId x = m.input({1, 8});
  const ValueId h = m.add("Relu", {m.add("Sub", {x, m.weights({1}, {0.5})})});
  const Graph graph =
      m.finish(m.add("MatMul", {h, m.weights({8, 1}, std::vector<double>(8, 1.0))}));
  expect_close_below(lower(jacobian_ascend(graph, "2")), std::sqrt(8.0));
  expect_close_below(lower(jacobian_ascend(graph, "inf")), 8);
  expect_close_below(lower(jacobian_ascend(graph, "2", box(8, -1, 1))), std::sqrt(8.0));
}

TEST(JacobianAscent, SmoothFunctionsLoseLittleToTheProof) {
  expect_close_below(lower(jacobian_ascend(unary("Sigmoid"), "2")), 0.25, 1e-6);
  expect_close_below(lower(jacobian_ascend(unary("Tanh"), "2")), 1, 1e-6);
  // Steepest at the end of the box.
  expect_close_below(lower(jacobian_ascend(unary("Tanh"), "2", box(1, 1, 2))),
                     1 - std::pow(std::tanh(1.0), 2), 1e-5);
}

TEST(JacobianAscent, StaysInBallsOfAllNorms) {
  const double r = 0.3;
  for (const double p : {1.0, 2.0, 3.0, HUGE_VAL}) {
    for (const char* norm : {"1", "2", "inf"}) {
      EXPECT_GT(lower(jacobian_ascend(affine(), norm, ball({1, -2}, r, p), 1)), 4.99)
          << p << " " << norm;
    }
  }
  Domain both = ball({1, -2}, r);
  both.box = Box{filled(2, -1.9), filled(2, 1)};
  expect_close_below(lower(jacobian_ascend(affine(), "2", both)), std::sqrt(45.0));
}

TEST(JacobianAscent, ConstantFunctionHasNoLowerBoundAboveZero) {
  GraphMaker m;
  const ValueId x = m.input({1, 2});
  const Graph graph = m.finish(m.add("MatMul", {x, m.weights({2, 2}, {0, 0, 0, 0})}));
  EXPECT_EQ(lower(jacobian_ascend(graph, "2")), 0);
}

// A network on which the search would go on for a while.
Graph wide() {
  std::mt19937_64 rng(5);
  std::normal_distribution<double> normal;
  GraphMaker m;
  ValueId x = m.input({1, 300});
  for (int layer = 0; layer < 4; ++layer) {
    std::vector<double> entries(300 * 300);
    for (double& e : entries) e = normal(rng) / 17;
    x = m.add("Relu", {m.add("MatMul", {x, m.weights({300, 300}, std::move(entries))})});
  }
  return m.finish(x);
}

TEST(JacobianAscent, StopsAtOnceWhenAsked) {
  const Graph graph = wide();
  const Query query{&graph, parse_norms("2"), {}};
  std::stop_source source;
  RunContext context;
  context.clock = RunClock::by_wall(HUGE_VAL, source.get_token());
  context.progress = [&](const ProgressEvent& event) {
    if (event.best->lower(Guarantee::kProved)) source.request_stop();
  };
  const Answer answer = find_bracket(query, {.methods = {"jacobian-ascent"}}, context);
  EXPECT_EQ(answer.outcome, Outcome::kInterrupted);
  EXPECT_GT(lower(answer), 0);
}

TEST(JacobianAscent, SameSeedSameAnswer) {
  EXPECT_EQ(lower(jacobian_ascend(affine(), "3:1.5")), lower(jacobian_ascend(affine(), "3:1.5")));
}

TEST(Point, NormOfTheJacobian) {
  const Answer at = jacobian_ascend(unary("Tanh"), "2", ball({0.7}, 0), 5, "point");
  EXPECT_NEAR(lower(at, Guarantee::kReal), 1 - std::pow(std::tanh(0.7), 2), 1e-12);
  EXPECT_LE(lower(at), 1 - std::pow(std::tanh(0.7), 2) + 1e-15);
  EXPECT_NEAR(lower(at), 1 - std::pow(std::tanh(0.7), 2), 1e-12);
  for (const auto& [norm, exact] : std::vector<std::pair<std::string, double>>{
           {"2", std::sqrt(45.0)}, {"1", 7}, {"inf", 9}, {"1:inf", 5}, {"inf:1", 12}}) {
    const Answer answer = jacobian_ascend(affine(), norm, ball({1, 2}, 0), 5, "point");
    EXPECT_NEAR(lower(answer, Guarantee::kReal), exact, 1e-9) << norm;
  }
}

TEST(Point, OneSidedDerivativesAtAKinkAreNotBelieved) {
  // relu(x) - relu(-x) = x, whatever jvp takes at 0.
  GraphMaker m;
  const ValueId x = m.input({1, 1});
  const ValueId a = m.add("Relu", {x}), b = m.add("Relu", {m.add("Neg", {x})});
  const Graph graph = m.finish(m.add("Sub", {a, b}));
  const Answer answer = jacobian_ascend(graph, "2", ball({0}, 0), 5, "point");
  EXPECT_NEAR(lower(answer, Guarantee::kEstimate), 1, 1e-9);
}

TEST(Point, CentreOfABall) {
  const Answer answer = jacobian_ascend(affine(), "2", ball({1, 2}, 0.1), 5, "point");
  EXPECT_NEAR(lower(answer), std::sqrt(45.0), 1e-9);
  EXPECT_LE(lower(answer), std::sqrt(45.0) + 1e-14);
  // On the edge of a box the direction may lead out of it.
  Domain edge = ball({1, 2}, 0.1);
  edge.box = Box{Tensor::vector({1, 0}), Tensor::vector({5, 5})};
  EXPECT_EQ(lower(jacobian_ascend(affine(), "2", edge, 5, "point")), 0);
  edge.box = Box{Tensor::vector({0, 0}), Tensor::vector({5, 5})};
  EXPECT_NEAR(lower(jacobian_ascend(affine(), "2", edge, 5, "point")), std::sqrt(45.0), 1e-9);
  // |x| at its kink: either derivative may be meant.
  const Answer kink = jacobian_ascend(unary("Abs"), "2", ball({0}, 0.1), 5, "point");
  EXPECT_EQ(lower(kink, Guarantee::kEstimate), 0);
  const Answer other = jacobian_ascend(affine(), "2", ball({1, 2}, 0), 5);
  EXPECT_EQ(lower(other), 0);
}

}  // namespace
}  // namespace lipscope

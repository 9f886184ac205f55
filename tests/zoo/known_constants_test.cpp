// SPDX-License-Identifier: Apache-2.0
// Small networks whose constant is known exactly; the derivation stands beside each. The bracket
// has to hold it with zero tolerance on the unsafe side.
#include <gtest/gtest.h>

#include <cmath>

#include "estimate/counted_for_test.h"
#include "estimate/quotient.h"
#include "lipscope/bound.h"
#include "lipscope/error.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;

struct Bounds {
  double lower, upper;
};

Bounds solve_bounds(const Graph& graph, const std::string& norm, Domain domain = {}) {
  const Query query{&graph, parse_norms(norm), std::move(domain)};
  const Answer answer = find_bracket(query, {.time = std::chrono::duration<double>(5)}, counted());
  const auto lower = answer.bracket.lower(Guarantee::kProved),
             upper = answer.bracket.upper(Guarantee::kProved);
  return {lower ? lower->value : 0, upper ? upper->value : HUGE_VAL};
}

void expect_exact(const Graph& graph, const std::string& norm, double exact,
                  double relative = 1e-6) {
  const Bounds b = solve_bounds(graph, norm);
  EXPECT_LE(b.lower, exact * (1 + 1e-15)) << norm;  // `exact` itself is a rounded number
  EXPECT_GE(b.upper, exact * (1 - 1e-15)) << norm;
  EXPECT_GE(b.lower, exact * (1 - relative)) << norm;
  EXPECT_LE(b.upper, exact * (1 + relative)) << norm;
}

// y = W x with W = [[3, 0], [4, 5]]: sigma_1 = sqrt(45), columns sum to 7 and 5, rows to 3 and 9.
Graph triangle() {
  GraphMaker m;
  const ValueId x = m.input({1, 2});
  return m.finish(m.add("MatMul", {x, m.weights({2, 2}, {3, 4, 0, 5})}));
}
TEST(KnownConstants, LinearMapInEveryExactNorm) {
  expect_exact(triangle(), "2", std::sqrt(45.0));
  expect_exact(triangle(), "1", 7);
  expect_exact(triangle(), "inf", 9);
  expect_exact(triangle(), "1:inf", 5);  // the largest entry
}

// relu(x) - relu(-x) = x: the exact constant is 1, the sum rule says 2.
TEST(KnownConstants, SumOfReluBranchesIsSound) {
  GraphMaker m;
  const ValueId x = m.input({1, 1});
  const ValueId a = m.add("Relu", {x}), b = m.add("Relu", {m.add("Neg", {x})});
  const Bounds bounds = solve_bounds(m.finish(m.add("Sub", {a, b})), "2");
  EXPECT_LE(bounds.lower, 1);
  EXPECT_GE(bounds.lower, 1 - 1e-9);
  EXPECT_GE(bounds.upper, 1);
  EXPECT_LE(bounds.upper, 2 + 1e-9);
}

// Concatenation of two copies of x: sqrt(2) in l2, 2 in l1, 1 in linf.
TEST(KnownConstants, ConcatCombinesInTheOutputNorm) {
  GraphMaker m;
  const ValueId x = m.input({1, 3});
  const Graph graph = m.finish(m.add("Concat", {x, x}, {{"axis", Index{1}}}));
  expect_exact(graph, "2", std::sqrt(2.0));
  expect_exact(graph, "1", 2);
  expect_exact(graph, "inf", 1);
}

// x + relu(2x): slope 3 for x > 0.
TEST(KnownConstants, Residual) {
  GraphMaker m;
  const ValueId x = m.input({1, 1});
  const ValueId r = m.add("Relu", {m.add("MatMul", {x, m.weights({1, 1}, {2})})});
  expect_exact(m.finish(m.add("Add", {x, r})), "2", 3);
}

// All-ones 3x3 kernel, zero padding, 6x6: the Kronecker square of tridiag(1,1,1), whose largest
// eigenvalue is 1 + 2 cos(pi/7). The reshaped kernel would say 3.
TEST(KnownConstants, ConvolutionIsNotItsReshapedKernel) {
  GraphMaker m;
  const ValueId x = m.input({1, 1, 6, 6});
  const ValueId w = m.weights({1, 1, 3, 3}, std::vector<double>(9, 1.0));
  const Graph graph = m.finish(m.add("Conv", {x, w}, {{"pads", std::vector<Index>{1, 1, 1, 1}}}));
  expect_exact(graph, "2", std::pow(1 + 2 * std::cos(M_PI / 7), 2));
  expect_exact(graph, "inf", 9);
}

// Kernel (1, 1, -1) of length 6 with zero padding: 2.06082..., while the symbol on the same grid
// says 2.
TEST(KnownConstants, SameGridFourierWouldBeTooSmall) {
  GraphMaker m;
  const ValueId x = m.input({1, 1, 6});
  const ValueId w = m.weights({1, 1, 3}, {1, 1, -1});
  const Bounds b =
      solve_bounds(m.finish(m.add("Conv", {x, w}, {{"pads", std::vector<Index>{1, 1}}})), "2");
  EXPECT_GE(b.upper, 2.0608);
  EXPECT_LE(b.lower, 2.0609);
  EXPECT_GE(b.lower, 2.06);
}

TEST(KnownConstants, Activations) {
  const auto graph_of = [](const std::string& op, int opset = 20) {
    GraphMaker m;
    const ValueId x = m.input({1, 1});
    return m.finish(m.add(op, {x}, {}, opset));
  };
  expect_exact(graph_of("Sigmoid"), "2", 0.25, 1e-5);
  expect_exact(graph_of("Tanh"), "2", 1, 1e-5);
  expect_exact(graph_of("Gelu"), "2", 0.5 * (1 + std::erf(1.0)) + std::exp(-1.0) / std::sqrt(M_PI),
               1e-5);
  expect_exact(graph_of("HardSwish"), "2", 1.5, 1e-2);
}

// Softmax: 1/2 in every lp, 2^(1/q - 1/p - 1) for p:q.
TEST(KnownConstants, Softmax) {
  GraphMaker m;
  const ValueId x = m.input({1, 2});
  const Graph graph = m.finish(m.add("Softmax", {x}, {{"axis", Index{-1}}}));
  for (const char* norm : {"1", "2", "inf", "3"}) expect_exact(graph, norm, 0.5, 1e-4);
  expect_exact(graph, "inf:1", 1, 1e-4);
  expect_exact(graph, "1:inf", 0.25, 1e-4);
}

TEST(KnownConstants, StepsHaveNoFiniteConstantAndSayWhere) {
  GraphMaker m;
  const ValueId x = m.input({1, 2});
  const Graph graph = m.finish(m.add("Round", {x}));
  const Query query{&graph, parse_norms("2"), {}};
  const Answer answer = find_bracket(query, {.time = std::chrono::duration<double>(1)}, counted());
  EXPECT_TRUE(std::isinf(answer.bracket.upper(Guarantee::kProved)->value));
  EXPECT_NE(answer.no_bound.find("Round"), std::string::npos);
}

TEST(KnownConstants, ExtremeWeightsGiveValidBounds) {
  for (const double scale : {1e-300, 1e-150, 1e150, 1e300}) {
    GraphMaker m;
    const ValueId x = m.input({1, 2}, ElementType::kFloat64);
    const ValueId w = m.weights(
        Tensor(ElementType::kFloat64, {2, 2}, std::vector<double>{scale, 0, 0, scale / 2}));
    const Graph graph = m.finish(m.add("MatMul", {x, w}));
    const Query query{&graph, parse_norms("2"), {}};
    const Answer answer =
        find_bracket(query, {.time = std::chrono::duration<double>(1)}, counted());
    EXPECT_GE(answer.bracket.upper(Guarantee::kProved)->value, scale);
    EXPECT_LE(answer.bracket.upper(Guarantee::kProved)->value, scale * 1.001);
  }
}

TEST(Bracket, ALowerBoundAboveAnUpperOneIsADefect) {
  Bracket bracket;
  bracket.add_upper({1, Guarantee::kProved, "a"});
  bracket.add_lower({5, Guarantee::kEstimate, "guess"});
  EXPECT_THROW(bracket.add_lower({2, Guarantee::kProved, "b"}), Error);
  EXPECT_THROW(bracket.add_upper({NAN, Guarantee::kProved, "c"}), Error);
}

TEST(Bracket, AnEstimateNeverPushesOutAProof) {
  Bracket bracket;
  bracket.add_upper({10, Guarantee::kProved, "proof"});
  bracket.add_upper({3, Guarantee::kEstimate, "guess"});
  EXPECT_EQ(bracket.upper(Guarantee::kProved)->value, 10);
  EXPECT_EQ(bracket.upper(Guarantee::kEstimate)->value, 3);
}

}  // namespace
}  // namespace lipscope

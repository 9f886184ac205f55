// SPDX-License-Identifier: Apache-2.0
// Constants computed elsewhere to twelve digits, asked of whole networks: both ends of the bracket
// have to hold the value, and to be as close to it as is said.
#include <gtest/gtest.h>

#include <cmath>

#include "estimate/counted_for_test.h"
#include "lipscope/bound.h"
#include "lipscope/evaluate.h"
#include "lipscope/select.h"
#include "softmax/norm.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;
using Ints = std::vector<Index>;

constexpr double kDigits = 1e-12;  // of the values below

struct Golden {
  const char* norm;
  double value;
  double above = 1e-9;  // relative distance allowed to the upper bound,
  double below = 1e-9;  // and to the lower one
};

Answer solve_answer(const Graph& graph, const std::string& norm, const Domain& domain = {},
                    std::vector<std::string> methods = {}) {
  const Graph merged = select(graph, {}).graph;
  const Query query{&merged, parse_norms(norm), domain};
  return find_bracket(
      query, {.time = std::chrono::duration<double>(3), .methods = std::move(methods)}, counted());
}

double upper(const Answer& answer) { return answer.bracket.upper(Guarantee::kProved)->value; }
double lower(const Answer& answer) { return answer.bracket.lower(Guarantee::kProved)->value; }

void expect_values(const Graph& graph, const std::vector<Golden>& values) {
  for (const Golden& expected : values) {
    SCOPED_TRACE(expected.norm);
    const Answer answer = solve_answer(graph, expected.norm);
    const double value = expected.value;
    EXPECT_LE(lower(answer), value + kDigits);
    EXPECT_GE(upper(answer), value - kDigits);
    EXPECT_GE(lower(answer), value * (1 - expected.below));
    EXPECT_LE(upper(answer), value * (1 + expected.above));
  }
}

// s = softmax at one point, M = diag(s) - s s'. M is symmetric: its norms for p and for p / (p - 1)
// agree. Exponents without a closed form: the other values stand beside src/softmax.
TEST(GoldenValues, SoftmaxJacobianBetweenTheExactExponents) {
  struct Row {
    std::vector<double> s;
    const char* norm;
    double value;
  };
  const std::vector<Row> rows = {
      {{0.5, 0.3, 0.2}, "3", 0.394638057361},
      {{0.5, 0.3, 0.2}, "1.5", 0.394638057361},
      {{0.5, 0.3, 0.2}, "4", 0.405600080665},
      {{0.7, 0.2, 0.1}, "3", 0.339578306830},
      {{0.7, 0.2, 0.1}, "1.5", 0.339578306830},
      {{0.7, 0.2, 0.1}, "4", 0.347491042066},
      {{0.5, 0.3, 0.2}, "1.333333333333333", 0.405600080665},
  };
  for (const Row& row : rows) {
    const NormBracket b = SoftmaxNorm(parse_norms(row.norm))(SoftmaxRow::from_weights(row.s));
    EXPECT_LE(b.lower, row.value + kDigits) << row.norm;
    EXPECT_GE(b.upper, row.value - kDigits) << row.norm;
    EXPECT_GE(b.lower, row.value * (1 - 1e-9)) << row.norm;
    EXPECT_LE(b.upper, row.value * 1.1) << row.norm;
  }
}

// The largest eigenvalue of M is at most s_1 (1 - s_1 + s_2), the largest entries first, and equal
// to it where the rest of s is one value.
TEST(GoldenValues, SoftmaxEigenvalueAgainstItsClosedBound) {
  const std::vector<std::vector<double>> rows = {
      {0.5, 0.3, 0.2}, {0.7, 0.2, 0.1}, {0.9, 0.05, 0.05}};
  const double bounds[] = {0.4, 0.35, 0.135};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const NormBracket b = SoftmaxNorm(parse_norms("2"))(SoftmaxRow::from_weights(rows[i]));
    EXPECT_LE(b.upper, bounds[i] * (1 + 1e-14));
    if (rows[i][1] == rows[i][2]) {
      EXPECT_GE(b.upper, bounds[i] * (1 - 1e-15));
    }
  }
}

// y = A x with A = [[1, 2], [3, 4]]. l1: largest column sum, linf: largest row sum, l2: the largest
// singular value; l3 and l1.5 have no closed form, but A has no negative entry.
TEST(GoldenValues, DenseLayer) {
  GraphMaker m;
  const ValueId x = m.input({1, 2});
  const Graph graph = m.finish(m.add("MatMul", {x, m.weights({2, 2}, {1, 3, 2, 4})}));
  expect_values(graph, {{"1", 6},
                        {"inf", 7},
                        {"2", 5.464985704219},
                        {"3", 5.733109524814, 1e-4},
                        {"1.5", 5.372514539999, 1e-4}});
}

Graph short_kernel(Index length, bool circular) {
  GraphMaker m;
  const ValueId x = m.input({1, 1, length}), kernel = m.weights({1, 1, 3}, {1, 1, -1});
  if (!circular) return m.finish(m.add("Conv", {x, kernel}, {{"pads", Ints{1, 1}}}));
  const ValueId padded =
      m.add("Pad", {x, m.integers({0, 0, 1, 0, 0, 1})}, {{"mode", std::string("wrap")}}, 19);
  return m.finish(m.add("Conv", {padded, kernel}));
}

// Kernel (1, 1, -1), symbol 1 - 2i sin(t): at most sqrt(5), and 2 on the six frequencies of a
// circle of length 6. Zero padding cuts sections out of the map on the whole line: sqrt(5) bounds
// them all, and long ones come near.
TEST(GoldenValues, ConvolutionOnALineAndOnACircle) {
  expect_values(short_kernel(6, false), {{"2", 2.060820128909}, {"1", 3}, {"inf", 3}});
  expect_values(short_kernel(6, true), {{"2", 2}, {"1", 3}, {"inf", 3}});
  const Answer line = solve_answer(short_kernel(48, false), "2");
  EXPECT_LE(upper(line), std::sqrt(5) * (1 + 1e-9));
  EXPECT_GE(lower(line), std::sqrt(5) * 0.995);
}

Graph all_ones(bool circular) {
  GraphMaker m;
  const ValueId x = m.input({1, 1, 6, 6});
  const ValueId kernel = m.weights({1, 1, 3, 3}, std::vector<double>(9, 1.0));
  if (!circular) return m.finish(m.add("Conv", {x, kernel}, {{"pads", Ints{1, 1, 1, 1}}}));
  const ValueId padded =
      m.add("Pad", {x, m.integers({0, 0, 1, 1, 0, 0, 1, 1})}, {{"mode", std::string("wrap")}}, 19);
  return m.finish(m.add("Conv", {padded, kernel}));
}

// All-ones 3x3 kernel on 6x6: the constant image is an eigenvector on the torus, with eigenvalue 9.
TEST(GoldenValues, AllOnesKernelOnATorusAndOnASquare) {
  expect_values(all_ones(true), {{"2", 9}, {"1", 9}, {"inf", 9}});
  expect_values(all_ones(false), {{"2", 7.850855075327}, {"1", 9}, {"inf", 9}});
}

// 3x3 windows with stride 2 on 12x12, no padding. A cell lies in at most four windows: 4/9 in l1. A
// constant image keeps its size: 1 in linf.
TEST(GoldenValues, OverlappingAveragePool) {
  GraphMaker m;
  const Graph graph = m.finish(m.add("AveragePool", {m.input({1, 1, 12, 12})},
                                     {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}}));
  expect_values(graph, {{"2", 0.525783423063, 1e-9, 1e-4}, {"1", 4.0 / 9}, {"inf", 1}});
}

// f(X) = softmax(X X') X for two tokens of width one.
Graph attention() {
  GraphMaker m;
  const ValueId x = m.input({2, 1});
  const ValueId turned = m.add("Transpose", {x}, {{"perm", Ints{1, 0}}});
  const ValueId weights = m.add("Softmax", {m.add("MatMul", {x, turned})}, {{"axis", Index{-1}}});
  return m.finish(m.add("MatMul", {weights, x}));
}

// At X = (0, 1) the Jacobian is [[0.75, 0.5], [0.07232949, 1.12428245]], its norm 1.303152069591.
TEST(GoldenValues, AttentionAtAPoint) {
  constexpr double kNorm = 1.303152069591;
  const double jacobian[2][2] = {{0.75, 0.5}, {0.07232949, 1.12428245}};
  const Graph graph = attention();
  const Trace trace(graph,
                    std::vector{Tensor(ElementType::kFloat64, {2, 1}, std::vector{0.0, 1.0})});
  for (std::size_t k = 0; k < 2; ++k) {
    std::vector<double> unit(2, 0.0);
    unit[k] = 1;
    const Tensor column = trace.jvp(std::vector{Tensor(ElementType::kFloat64, {2, 1}, unit)})[0];
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(column.doubles()[i], jacobian[i][k], 5e-9);
  }
  Domain domain;
  domain.ball = Ball{Tensor::vector({0, 1}), 0, Norm(2)};
  const Answer at_point = solve_answer(graph, "2", domain);
  EXPECT_NEAR(at_point.bracket.lower(Guarantee::kReal)->value, kNorm, 2e-12);
  domain.ball->radius = 1e-4;
  const Answer around = solve_answer(graph, "2", domain);
  EXPECT_GE(upper(around), kNorm);
  EXPECT_NEAR(lower(around), kNorm, 1e-3);
}

// W_0 = [[1, 2], [-1, 1]], ReLU, W_1 = [[1, -1], [1/2, 2]]. All units active: W_1 W_0 has the norm
// sqrt(45) / 2, the largest over all patterns. |W_0| |W_1| = 5.149... W_1' W_1 = diag(1.25, 5) is
// diagonal, so these multipliers prove |W_0' diag(1.25, 5) W_0| = 45 / 4: the semidefinite bound is
// exact.
TEST(GoldenValues, TwoLayersWithRelu) {
  GraphMaker m;
  const ValueId x = m.input({1, 2});
  const ValueId hidden = m.add("Relu", {m.add("MatMul", {x, m.weights({2, 2}, {1, -1, 2, 1})})});
  const Graph graph = m.finish(m.add("MatMul", {hidden, m.weights({2, 2}, {1, 0.5, -1, 2})}));
  expect_values(graph, {{"2", 3.354101966250, 3e-4}});
  const double product = upper(solve_answer(graph, "2", {}, {"layer-product"}));
  EXPECT_GE(product, 5.149162862899 - kDigits);
  EXPECT_LE(product, 5.149162862899 * (1 + 1e-9));
}

}  // namespace
}  // namespace lipscope

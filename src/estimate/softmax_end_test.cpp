// SPDX-License-Identifier: Apache-2.0
// Local bounds of probabilities and log-probabilities.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "estimate/chain_for_test.h"
#include "passes/split_softmax.h"
#include "pieces/pieces_for_test.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;

constexpr const char* kLocal[] = {"fast-lip", "recur-jac",    "linear-jacobian",
                                  "gram-l2",  "local-lipsdp", "exact-local"};

// Two classes with the logits x and 0.
Graph two_classes(const std::string& squash) {
  GraphMaker m;
  const ValueId x = m.input({1, 1});
  const ValueId logits = m.add("MatMul", {x, m.weights({1, 2}, {1, 0})});
  return m.finish(m.add(squash, {logits}, {{"axis", Index{1}}}));
}

Answer end_answer(const Graph& graph, const std::string& norm, const Domain& domain,
                  std::vector<std::string> methods = {}) {
  return find_bracket({&graph, parse_norms(norm), domain},
                      {.time = std::chrono::duration<double>(20), .methods = std::move(methods)},
                      {});
}

Domain interval(double low, double high) {
  return {.box = Box{Tensor::vector(std::vector<double>{low}),
                     Tensor::vector(std::vector<double>{high})}};
}

TEST(SoftmaxEnd, TwoClassesHaveTheLogisticFunction) {
  const double slope = std::exp(1.0) / std::pow(1 + std::exp(1.0), 2);
  const double rest = 1 / (1 + std::exp(1.0));
  struct Row {
    const char* squash;
    Selection selection;
    const char* norm;
    double constant;
  };
  const std::vector<Row> rows = {
      {"Softmax", {.output = 0}, "2", slope},
      {"Softmax", {.output = 1}, "inf", slope},
      {"Softmax", {.margin = std::pair<Index, Index>{0, 1}}, "2", 2 * slope},
      {"Softmax", {}, "1", 2 * slope},
      {"Softmax", {}, "2", std::sqrt(2) * slope},
      {"LogSoftmax", {.output = 0}, "2", rest},
      {"LogSoftmax", {.output = 1}, "2", 1 / (1 + std::exp(-2.0))}};
  for (const Row& row : rows) {
    const Graph whole = two_classes(row.squash);
    const Graph graph = select(whole, row.selection).graph;
    for (const char* method : kLocal) {
      const Answer answer = end_answer(graph, row.norm, interval(1, 2), {method});
      const auto upper = answer.bracket.upper(Guarantee::kProved);
      if (!upper) continue;  // other norms
      EXPECT_GE(upper->value, row.constant * (1 - 1e-15)) << method << " " << row.squash;
      EXPECT_LE(upper->value, row.constant * (1 + 1e-5)) << method << " " << row.squash;
    }
    const Answer answer = end_answer(graph, row.norm, interval(1, 2));
    EXPECT_LE(*answer.bracket.ratio(), 1 + 1e-4) << row.squash << " " << row.norm;
  }
}

TEST(SoftmaxEnd, OneJacobianAtAPoint) {
  // Logits of three classes: 0.2, -0.1 and 0.5 at the origin.
  const double w[3][2] = {{1, 2}, {-1, 0.5}, {0.25, -2}}, b[3] = {0.2, -0.1, 0.5};
  double s[3], total = 0;
  for (int i = 0; i < 3; ++i) total += s[i] = std::exp(b[i]);
  for (double& e : s) e /= total;
  for (const bool log : {false, true}) {
    GraphMaker m;
    const ValueId x = m.input({1, 2});
    const ValueId z = m.add("Gemm", {x, m.weights({2, 3}, {1, -1, 0.25, 2, 0.5, -2}),
                                     m.weights({3}, {b[0], b[1], b[2]})});
    const Graph whole = m.finish(m.add(log ? "LogSoftmax" : "Softmax", {z}, {{"axis", Index{1}}}));
    for (Index k = 0; k < 3; ++k) {
      double largest = 0, sum = 0;
      for (int c = 0; c < 2; ++c) {
        double entry = w[k][c];
        for (int j = 0; j < 3; ++j) entry -= s[j] * w[j][c];
        entry *= log ? 1 : s[k];
        largest = std::max(largest, std::fabs(entry));
        sum += std::fabs(entry);
      }
      const Graph graph = select(whole, {.output = k}).graph;
      const Domain point{.ball = Ball{Tensor::vector(std::vector<double>{0, 0}), 0, Norm(2)}};
      const auto upper = [&](const char* norm) {
        return end_answer(graph, norm, point, {"fast-lip"})
            .bracket.upper(Guarantee::kProved)
            ->value;
      };
      EXPECT_NEAR(upper("inf"), sum, 1e-5);
      EXPECT_NEAR(upper("1"), largest, 1e-5);
    }
  }
}

TEST(SoftmaxEnd, LeavesOtherGraphsAlone) {
  Rng rng(1);
  EXPECT_FALSE(split_softmax(testing_support::random_pieces(rng, 3, {4}, 2)));
  GraphMaker m;
  const ValueId x = m.input({1, 3});
  const ValueId s = m.add("Softmax", {x}, {{"axis", Index{1}}});
  EXPECT_FALSE(split_softmax(m.finish(m.add("Relu", {s}))));
  GraphMaker rows;
  const ValueId two = rows.input({2, 3});
  EXPECT_FALSE(split_softmax(rows.finish(rows.add("Softmax", {two}, {{"axis", Index{1}}}))));
  GraphMaker around;
  const ValueId z = around.input({1, 3});
  const ValueId p = around.add("Softmax", {z}, {{"axis", Index{1}}});
  EXPECT_FALSE(split_softmax(around.finish(around.add("Add", {z, p}))));
}

// Probabilities add up to 1, so that far from a point one of them is at most 1/4 as steep as the
// steepest difference of logits, and a logarithm as steep.
TEST(SoftmaxEnd, IsNoSteeperThanDifferencesOfLogitsAllow) {
  const Index classes = 8;
  std::vector<double> identity(classes * classes);
  for (std::size_t i = 0; i < identity.size(); i += classes + 1) identity[i] = 1;
  const Domain wide{.ball = Ball{Tensor::zeros(ElementType::kFloat64, {classes}), 40, Norm(2)}};
  for (const bool log : {false, true}) {
    GraphMaker m;
    const ValueId z =
        m.add("MatMul", {m.input({1, classes}), m.weights({classes, classes}, identity)});
    const Graph whole = m.finish(m.add(log ? "LogSoftmax" : "Softmax", {z}, {{"axis", Index{1}}}));
    const auto upper = [&](const Selection& selection, const char* norm, const char* method) {
      const Graph graph = select(whole, selection).graph;
      return end_answer(graph, norm, wide, {method}).bracket.upper(Guarantee::kProved)->value;
    };
    // The steepest difference: sqrt 2 in l2, 2 in l-infinity.
    EXPECT_NEAR(upper({.output = 3}, "2", "gram-l2"), std::sqrt(2) * (log ? 1 : 0.25), 1e-5);
    EXPECT_NEAR(upper({.output = 3}, "inf", "linear-jacobian"), log ? 2 : 0.5, 1e-5);
    EXPECT_NEAR(upper({}, "inf", "fast-lip"), log ? 2 : 0.5, 1e-5);
  }
}

// The search splits differences of logits, too.
TEST(SoftmaxEnd, TheSearchNarrowsTheBracket) {
  Rng rng(7);
  for (const bool log : {false, true}) {
    GraphMaker m;
    ValueId x = m.input({1, 2});
    x = m.add("Gemm",
              {x, m.weights(random_tensor(rng, {2, 4})), m.weights(random_tensor(rng, {4}))});
    x = m.add("Gemm", {m.add("Relu", {x}), m.weights(random_tensor(rng, {4, 3}))});
    const Graph whole = m.finish(m.add(log ? "LogSoftmax" : "Softmax", {x}, {{"axis", Index{1}}}));
    const Graph graph = select(whole, {.output = 1}).graph;
    const Domain box{.box = Box{Tensor::vector(std::vector<double>{-0.5, 0}),
                                Tensor::vector(std::vector<double>{0, 0.5})}};
    const Answer answer = find_bracket(
        {&graph, parse_norms("inf"), box},
        {.time = std::chrono::duration<double>(3), .methods = {"exact-local", "jacobian-ascent"}},
        {});
    EXPECT_LT(*answer.bracket.ratio(), 1.1) << log;
  }
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// When the planner runs the local bounds without a search, and when it says why not.
#include <gtest/gtest.h>

#include <algorithm>

#include "estimate/chain_for_test.h"
#include "estimate/counted_for_test.h"
#include "pieces/pieces_for_test.h"

namespace lipscope {
namespace {

Domain unit_box(const Graph& graph) {
  const auto n = static_cast<std::size_t>(input_size(graph));
  return {.box = Box{Tensor::vector(std::vector<double>(n, -1)),
                     Tensor::vector(std::vector<double>(n, 1))}};
}

const MethodReport& report_of(const Answer& answer, std::string_view name) {
  return *std::ranges::find(answer.methods, name, &MethodReport::method);
}

Answer local_answer(const Graph& graph, const std::string& norm, const Domain& domain,
                    std::vector<std::string> methods = {}) {
  const Budget budget{.time = std::chrono::duration<double>(20), .methods = std::move(methods)};
  return find_bracket({&graph, parse_norms(norm), domain}, budget, counted());
}

TEST(LocalMethods, AreSkippedWhereABetterOneRuns) {
  Rng rng(2);
  // Too large for the search to end, small enough for its first try.
  const Graph graph = testing_support::random_pieces(rng, 30, {40, 40, 40}, 10, {"Relu"});
  Answer answer = find_bracket({&graph, parse_norms("inf"), unit_box(graph)},
                               {.time = std::chrono::duration<double>(1)}, counted());
  EXPECT_EQ(report_of(answer, "fast-lip").skipped,
            "linear-jacobian is never larger, and quick here");
  EXPECT_EQ(report_of(answer, "recur-jac").skipped,
            "linear-jacobian costs as much and is hardly ever larger");
  EXPECT_EQ(report_of(answer, "linear-jacobian").skipped, "exact-local began with this bound");
  EXPECT_TRUE(report_of(answer, "exact-local").bound);
  // Norms without a search.
  answer = find_bracket({&graph, parse_norms("3"), unit_box(graph)},
                        {.time = std::chrono::duration<double>(1)}, counted());
  EXPECT_FALSE(report_of(answer, "exact-local").skipped.empty());
  EXPECT_TRUE(report_of(answer, "linear-jacobian").bound);
}

TEST(LocalMethods, NeedADomain) {
  Rng rng(3);
  const Graph graph = testing_support::random_pieces(rng, 3, {5}, 2);
  for (const char* name : {"fast-lip", "recur-jac", "linear-jacobian", "gram-l2", "local-lipsdp"}) {
    const Answer answer = local_answer(graph, "2", {}, {name});
    EXPECT_EQ(report_of(answer, name).skipped, "the domain is the whole space") << name;
    EXPECT_FALSE(answer.bracket.upper(Guarantee::kProved)) << name;
  }
  const Answer answer = local_answer(graph, "inf", unit_box(graph), {"gram-l2", "local-lipsdp"});
  EXPECT_EQ(report_of(answer, "gram-l2").skipped,
            "it is about lengths of rows or columns, or l2 to l2");
  EXPECT_EQ(report_of(answer, "local-lipsdp").skipped, report_of(answer, "gram-l2").skipped);
}

TEST(LocalMethods, RunWhenAskedForByName) {
  Rng rng(4);
  const Graph graph = testing_support::random_pieces(rng, 4, {6, 6}, 3);
  for (const char* name : {"fast-lip", "recur-jac", "linear-jacobian", "gram-l2", "local-lipsdp"}) {
    const Answer answer = local_answer(graph, "2", unit_box(graph), {name});
    ASSERT_TRUE(report_of(answer, name).bound) << name;
    EXPECT_EQ(report_of(answer, name).bound->guarantee, Guarantee::kProved);
    EXPECT_EQ(answer.bracket.upper(Guarantee::kProved)->method, name);
  }
}

// relu(c + 2 sign(c) - 2) is c for c = clip(x, 0.125, 1), which never comes to the step.
TEST(LocalMethods, KnowValuesBehindSteps) {
  testing_support::GraphMaker m;
  const ValueId c = m.add("Clip", {m.input({1, 1})}, {{"min", 0.125}, {"max", 1.0}}, 6);
  const ValueId step = m.add("Mul", {m.add("Sign", {c}), m.weights({1}, {2})});
  const ValueId sum = m.add("Sub", {m.add("Add", {c, step}), m.weights({1}, {2})});
  const Graph graph = m.finish(m.add("Relu", {sum}));
  for (const char* name : {"exact-local", "fast-lip", "recur-jac", "linear-jacobian", "gram-l2",
                           "local-lipsdp", "graph-jacobian"}) {
    const Answer answer = local_answer(graph, "2", unit_box(graph), {name});
    const auto upper = answer.bracket.upper(Guarantee::kProved);
    EXPECT_TRUE(!upper || upper->value >= 1) << name;
  }
}

// Where nothing changes its slope, all of them are the norm of the one Jacobian.
TEST(LocalMethods, AreTheConstantOfAPiece) {
  Rng rng(5);
  const Graph graph = testing_support::random_pieces(rng, 4, {6, 6}, 3, {"LeakyRelu"});
  const Domain point{
      .ball = Ball{Tensor::vector(std::vector<double>{0.3, -0.2, 0.5, 0.1}), 1e-9, Norm(2)}};
  const Answer exact = local_answer(graph, "2", point, {"exact-local"});
  const double value = exact.bracket.upper(Guarantee::kProved)->value;
  for (const char* name : {"fast-lip", "recur-jac", "linear-jacobian", "gram-l2", "local-lipsdp"}) {
    const Answer answer = local_answer(graph, "2", point, {name});
    EXPECT_NEAR(answer.bracket.upper(Guarantee::kProved)->value, value, 1e-4 * value) << name;
  }
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Mixed-integer programs: the solver on tiny ones, the largest gradient against enumeration.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "estimate/chain_for_test.h"
#include "estimate/gradient_program.h"
#include "pieces/pieces_for_test.h"

namespace lipscope {
namespace {

const MethodReport& milp_report(const Answer& answer) {
  return *std::ranges::find(answer.methods, "milp", &MethodReport::method);
}

Domain box_of_half(const Graph& graph, double half) {
  const auto n = static_cast<std::size_t>(input_size(graph));
  return {.box = Box{Tensor::vector(std::vector<double>(n, -half)),
                     Tensor::vector(std::vector<double>(n, half))}};
}

bool never() { return false; }

TEST(IntegerProgram, SolvesAKnapsack) {
  if (!has_integer_solver()) GTEST_SKIP() << "built without CBC";
  // 10 a + 13 b + 7 c with weights 5, 7, 4 and room for 11: a and c weigh 9, b and c 11.
  IntegerProgram program;
  for (const double worth : {10.0, 13.0, 7.0}) program.add({0, 1, worth, true});
  program.rows.push_back({{{0, 5}, {1, 7}, {2, 4}}, 0, 11});
  const IntegerSolution found = solve(program, 0, 10, never);
  EXPECT_TRUE(found.finished);
  EXPECT_NEAR(found.objective, 20, 1e-7);
  EXPECT_NEAR(found.bound, 20, 1e-7);
  EXPECT_NEAR(found.point[0], 0, 1e-7);
  // Nothing is above a cutoff.
  const IntegerSolution none = solve(program, 25, 10, never);
  EXPECT_TRUE(none.finished);
  EXPECT_EQ(none.bound, 25);
  EXPECT_TRUE(none.point.empty());
}

TEST(IntegerProgram, StopsWhenAsked) {
  if (!has_integer_solver()) GTEST_SKIP() << "built without CBC";
  IntegerProgram program;
  program.add({0, 1, 1, true});
  const IntegerSolution found = solve(program, 0, 10, [] { return true; });
  EXPECT_FALSE(found.finished);
  EXPECT_GE(found.bound, 1);
}

TEST(Milp, IsTheLargestGradientOfAllPieces) {
  if (!has_integer_solver()) GTEST_SKIP() << "built without CBC";
  Rng rng(21);
  int compared = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const Index inputs = 1 + testing_support::pick_of(rng, 3);
    const Graph graph = testing_support::random_pieces(
        rng, inputs, {2 + testing_support::pick_of(rng, 3), 1 + testing_support::pick_of(rng, 3)},
        1 + testing_support::pick_of(rng, 2));
    const Domain domain = box_of_half(graph, 1);
    const NormPair norms = parse_norms(trial % 2 == 0 ? "inf" : "1:inf");
    const LayeredNet net = testing_support::layered(graph);
    testing_support::Enumeration all(net, norms,
                                     std::vector<double>(static_cast<std::size_t>(inputs), -1),
                                     std::vector<double>(static_cast<std::size_t>(inputs), 1));
    const double expected = all.largest();
    if (all.thinnest < 1e-5) continue;  // pieces that a tolerance may miss, or invent
    const Answer answer = find_bracket({&graph, norms, domain}, {.methods = {"milp"}}, {});
    ASSERT_TRUE(milp_report(answer).bound) << milp_report(answer).skipped;
    EXPECT_NEAR(milp_report(answer).bound->value, expected, 1e-6 * (1 + expected)) << trial;
    EXPECT_NE(milp_report(answer).note.find("ended"), std::string::npos);
    ++compared;
    if (expected == 0) continue;
    // The point it found is proved in the ordinary way.
    const auto lower = answer.bracket.lower(Guarantee::kProved);
    ASSERT_TRUE(lower);
    EXPECT_LE(lower->value, expected * (1 + 1e-9));
    EXPECT_GE(lower->value, 0.99 * expected) << trial;
  }
  EXPECT_GT(compared, 40);
}

TEST(Milp, AgreesWithTheSearch) {
  if (!has_integer_solver()) GTEST_SKIP() << "built without CBC";
  Rng rng(22);
  for (int trial = 0; trial < 8; ++trial) {
    const Graph graph = testing_support::random_pieces(rng, 5, {6, 6}, 3, {"Relu", "LeakyRelu"});
    const Domain domain{.ball = Ball{random_tensor(rng, {5}, -1, 1), 0.3, Norm(HUGE_VAL)}};
    const NormPair norms = parse_norms(trial % 2 == 0 ? "inf" : "1:inf");
    const Answer answer =
        find_bracket({&graph, norms, domain}, {.methods = {"milp", "exact-local"}}, {});
    const auto upper = answer.bracket.upper(Guarantee::kProved);
    ASSERT_TRUE(upper && milp_report(answer).bound);
    EXPECT_EQ(upper->method, "exact-local");
    EXPECT_NEAR(milp_report(answer).bound->value, upper->value, 1e-6 * upper->value) << trial;
  }
}

TEST(Milp, ProvesNothingAndRunsOnlyByName) {
  Rng rng(23);
  const Graph graph = testing_support::random_pieces(rng, 3, {4}, 1);
  const Domain domain = box_of_half(graph, 1);
  const Answer usual = find_bracket({&graph, parse_norms("inf"), domain}, {}, {});
  EXPECT_EQ(milp_report(usual).skipped, "only when asked for: --methods milp");
  const Answer alone =
      find_bracket({&graph, parse_norms("inf"), domain}, {.methods = {"milp"}}, {});
  EXPECT_FALSE(alone.bracket.upper(Guarantee::kProved));
  if (!has_integer_solver()) {
    EXPECT_NE(milp_report(alone).skipped.find("not built in"), std::string::npos);
    return;
  }
  EXPECT_EQ(milp_report(alone).bound->guarantee, Guarantee::kEstimate);
  for (const char* norm : {"2", "1", "inf:1"}) {
    const Graph several = testing_support::random_pieces(rng, 3, {4}, 2);
    const Answer other =
        find_bracket({&several, parse_norms(norm), domain}, {.methods = {"milp"}}, {});
    EXPECT_EQ(milp_report(other).skipped, "it is about l-infinity or l1 to l-infinity") << norm;
  }
  const Answer everywhere =
      find_bracket({&graph, parse_norms("inf"), {}}, {.methods = {"milp"}}, {});
  EXPECT_EQ(milp_report(everywhere).skipped, "the domain is the whole space");
  const Domain ball{.ball = Ball{Tensor::vector(std::vector<double>(3, 0)), 1, Norm(2)}};
  const Answer round = find_bracket({&graph, parse_norms("inf"), ball}, {.methods = {"milp"}}, {});
  EXPECT_EQ(milp_report(round).skipped, "it is about boxes and l-infinity balls");
}

TEST(Milp, StopsWithWhatItCouldNotExclude) {
  if (!has_integer_solver()) GTEST_SKIP() << "built without CBC";
  Rng rng(24);
  // Minutes of work.
  const Graph graph = testing_support::random_pieces(rng, 10, {20, 20, 20}, 1, {"Relu"});
  const Domain domain = box_of_half(graph, 1);
  const Answer linear =
      find_bracket({&graph, parse_norms("inf"), domain}, {.methods = {"linear-jacobian"}}, {});
  const auto start = std::chrono::steady_clock::now();
  const Answer answer =
      find_bracket({&graph, parse_norms("inf"), domain},
                   {.time = std::chrono::duration<double>(0.5), .methods = {"milp"}}, {});
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  EXPECT_LT(spent.count(), 30);
  EXPECT_EQ(answer.outcome, Outcome::kTimeLimit);
  ASSERT_TRUE(milp_report(answer).bound);
  EXPECT_NE(milp_report(answer).note.find("stopped"), std::string::npos);
  EXPECT_LE(milp_report(answer).bound->value,
            linear.bracket.upper(Guarantee::kProved)->value * (1 + 1e-6));
  const auto lower = answer.bracket.lower(Guarantee::kProved);
  EXPECT_GE(milp_report(answer).bound->value, lower ? lower->value : 0);
}

}  // namespace
}  // namespace lipscope

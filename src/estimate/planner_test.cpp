// SPDX-License-Identifier: Apache-2.0
// What a run does with its time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/parallel.h"
#include "estimate/counted_for_test.h"
#include "passes/add_node.h"
#include "pieces/pieces_for_test.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

Query everywhere(const Graph& graph) { return {&graph, parse_norms("2"), {}}; }

Graph hard_network() {
  Rng rng(5);
  return testing_support::random_pieces(rng, 12, {40, 40, 40}, 6);
}

Answer with_effort(const Query& query, double effort, const Budget& budget = {}) {
  RunContext context;
  context.clock = RunClock::by_work(effort);
  return find_bracket(query, budget, context);
}

const MethodReport& report_of(const Answer& answer, std::string_view method) {
  return *std::ranges::find(answer.methods, method, &MethodReport::method);
}

TEST(Planner, AnEffortGivesTheSameAnswerForEveryNumberOfThreads) {
  const Graph graph = hard_network();
  std::optional<Answer> first;
  for (const int count : {1, 2, 4}) {
    set_threads(count);
    const Answer answer = with_effort(everywhere(graph), 0.02, {.time = std::chrono::hours(1)});
    if (!first) {
      first = answer;
      continue;
    }
    EXPECT_EQ(first->outcome, answer.outcome);
    EXPECT_EQ(first->witness->x, answer.witness->x);
    ASSERT_EQ(first->methods.size(), answer.methods.size());
    for (std::size_t i = 0; i < answer.methods.size(); ++i) {
      const MethodReport &a = first->methods[i], &b = answer.methods[i];
      EXPECT_EQ(a.skipped, b.skipped);
      ASSERT_EQ(a.bound.has_value(), b.bound.has_value()) << a.method;
      if (!a.bound) continue;
      EXPECT_EQ(a.bound->value, b.bound->value) << a.method;
    }
  }
  set_threads(0);
}

// sqrt(relu(x) - 1) on [-2, -1] is the root of -1: nothing moves there, but there is nothing,
// either.
TEST(Planner, AFunctionWithoutValuesHasNoConstant) {
  using testing_support::GraphMaker;
  using Inner = std::function<ValueId(GraphMaker&, ValueId)>;
  const Inner root = [](GraphMaker& m, ValueId flat) {
    return m.add("Sqrt", {m.add("Sub", {flat, m.weights({1}, {1})})});
  };
  const Inner quotient = [](GraphMaker& m, ValueId flat) {
    return m.add("Div", {flat, m.weights({1}, {0})});
  };
  const Inner computed = [](GraphMaker& m, ValueId flat) {
    const ValueId none = m.add("Sqrt", {m.weights({1}, {-1})});
    return m.add("Mul", {m.add("Mul", {flat, none}), m.weights({1}, {0})});
  };
  for (const Inner& inner : {root, quotient, computed}) {
    for (const std::vector<std::string>& methods :
         {std::vector<std::string>{}, {"dag"}, {"graph-jacobian"}, {"exact-local"}, {"lipsdp"}}) {
      GraphMaker m;
      const Graph graph = m.finish(inner(m, m.add("Relu", {m.input({1, 1})})));
      Query query = everywhere(graph);
      query.domain.box = Box{Tensor::vector({-2}), Tensor::vector({-1})};
      const Answer answer = with_effort(query, 0.01, {.methods = methods});
      const auto upper = answer.bracket.upper(Guarantee::kProved);
      EXPECT_TRUE(!upper || std::isinf(upper->value));
      EXPECT_FALSE(answer.proof);
      if (methods.empty()) {
        EXPECT_NE(answer.no_bound.find("no value"), std::string::npos);
      }
    }
  }
}

// x + m / m, with m any number: not a number where m is 0, but a number where it is not.
TEST(Planner, ConstantsThatStandForAnyNumberHaveValues) {
  GraphBuilder builder;
  const Tensor zero = Tensor::zeros(ElementType::kFloat64, {1});
  const Tensor least = Tensor::vector({-HUGE_VAL}), most = Tensor::vector({HUGE_VAL});
  const ValueId x = builder.input("x", {ElementType::kFloat64, {1}});
  const ValueId any =
      builder.constant("m", std::make_shared<const Constant>(zero, Box{least, most}));
  const ValueId one = add_node(builder, "Div", {any, any}, "quotient", {}, 13, {"q"});
  const Graph graph = builder.finish({add_node(builder, "Add", {x, one}, "sum", {}, 13, {"y"})});
  const Answer answer = with_effort(everywhere(graph), 0.01);
  EXPECT_EQ(answer.bracket.upper(Guarantee::kProved)->value, 1);
}

TEST(Planner, MoreEffortIsNoWorse) {
  const Graph graph = hard_network();
  double before = HUGE_VAL;
  for (const double effort : {1e-4, 1e-3, 1e-2, 5e-2}) {
    const Answer answer = with_effort(everywhere(graph), effort, {.time = std::chrono::hours(1)});
    const double upper = answer.bracket.upper(Guarantee::kProved)->value;
    EXPECT_LE(upper, before * (1 + 1e-9)) << effort;
    before = upper;
  }
}

TEST(Planner, TheTargetEndsARunBeforeExpensiveMethods) {
  const Graph graph = hard_network();
  const Answer whole = with_effort(everywhere(graph), 0.05);
  const double ratio = *whole.bracket.ratio();
  const Answer answer = with_effort(everywhere(graph), 1, {.target_ratio = 1.5 * ratio});
  EXPECT_EQ(answer.outcome, Outcome::kTarget);
  EXPECT_LE(*answer.bracket.ratio(), 1.5 * ratio);
  EXPECT_FALSE(report_of(answer, "jacobian-ascent").skipped.empty() &&
               !report_of(answer, "jacobian-ascent").bound);
}

TEST(Planner, EndsWhereMoreTimeBringsLittle) {
  const Graph graph = hard_network();
  const Answer answer = with_effort(everywhere(graph), 1e4,
                                    {.time = std::chrono::hours(100), .until_little_gain = true});
  EXPECT_EQ(answer.outcome, Outcome::kLittleGain);
  EXPECT_NE(answer.little_gain.find("upper / lower"), std::string::npos);
  EXPECT_TRUE(answer.bracket.ratio());
}

TEST(Planner, NoTimeStillHasTheCheapestBound) {
  const Graph graph = hard_network();
  const Answer answer = with_effort(everywhere(graph), 1e-9);
  EXPECT_EQ(answer.outcome, Outcome::kTimeLimit);
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Series of balls, hints, and what a ball of radius 0 means.
#include <gtest/gtest.h>

#include "estimate/chain_for_test.h"
#include "estimate/counted_for_test.h"
#include "estimate/quotient.h"
#include "lipscope/error.h"
#include "pieces/pieces_for_test.h"

namespace lipscope {
namespace {

double proved_upper(const Bracket& bracket) { return bracket.upper(Guarantee::kProved)->value; }
double proved_lower(const Bracket& bracket) {
  const auto lower = bracket.lower(Guarantee::kProved);
  return lower ? lower->value : 0;
}

TEST(Series, BothBoundsGrowWithTheRadius) {
  Rng rng(31);
  for (int trial = 0; trial < 12; ++trial) {
    const Graph graph = testing_support::random_pieces(rng, 3, {6, 6}, 2);
    const Query query{&graph,
                      parse_norms(trial % 2 == 0 ? "2" : "inf"),
                      {.ball = Ball{random_tensor(rng, {3}, -1, 1), 0, Norm(2)}}};
    const std::vector<double> radii{0, 0.01, 0.1, 0.3, 1};
    const auto series = find_series(
        query, radii, {.time = std::chrono::duration<double>(0.5), .target_ratio = 1.5}, counted());
    ASSERT_EQ(series.size(), radii.size());
    for (std::size_t i = 0; i < series.size(); ++i) {
      EXPECT_EQ(series[i].radius, radii[i]);
      EXPECT_LE(proved_lower(series[i].bracket), proved_upper(series[i].bracket));
      EXPECT_LE(proved_upper(series[i].bracket), proved_upper(series[i].answer.bracket));
      if (i == 0) continue;
      EXPECT_LE(proved_lower(series[i - 1].bracket), proved_lower(series[i].bracket)) << trial;
      EXPECT_LE(proved_upper(series[i - 1].bracket), proved_upper(series[i].bracket)) << trial;
    }
    // The witness of the largest ball is its own or that of a smaller one: inside in any case.
    const Answer& last = series.back().answer;
    if (!last.witness) continue;
    Query largest = query;
    largest.domain.ball->radius = radii.back();
    EXPECT_TRUE(in_domain(largest.domain, last.witness->x));
    EXPECT_GE(proved_quotient(largest, *last.witness), last.witnessed->value);
  }
}

TEST(Series, AHintIsALowerBoundBeforeAnyMethodRuns) {
  Rng rng(32);
  const Graph graph = testing_support::random_pieces(rng, 3, {6, 6}, 2);
  Query query{&graph,
              parse_norms("2"),
              {.ball = Ball{Tensor::vector(std::vector<double>(3, 0.2)), 0.5, Norm(2)}}};
  const Answer found = find_bracket(query, {.target_ratio = 1.1}, counted());
  const double lower = proved_lower(found.bracket);
  ASSERT_GT(lower, 0);
  RunContext context;
  context.hints = {{*found.witness, "exact-local"}};
  const Budget none{.time = std::chrono::duration<double>(0)};
  query.domain.ball->radius = 0.6;
  const Answer warm = find_bracket(query, none, context);
  EXPECT_NEAR(proved_lower(warm.bracket), lower, 1e-6 * lower);
  ASSERT_TRUE(warm.witness);
  // A pair outside the domain says nothing, and neither does one that is no pair.
  query.domain.ball->center = Tensor::vector(std::vector<double>(3, 9));
  EXPECT_EQ(proved_lower(find_bracket(query, none, context).bracket), 0);
  context.hints[0].witness.y = context.hints[0].witness.x;
  query.domain.ball->center = Tensor::vector(std::vector<double>(3, 0.2));
  EXPECT_EQ(proved_lower(find_bracket(query, none, context).bracket), 0);
}

TEST(Series, AnInterruptLeavesAQuickUpperBoundForEachRadius) {
  Rng rng(33);
  const Graph graph = testing_support::random_pieces(rng, 3, {6, 6}, 2);
  const Query query{&graph,
                    parse_norms("2"),
                    {.ball = Ball{Tensor::vector(std::vector<double>(3, 0.2)), 0, Norm(2)}}};
  std::stop_source source;
  source.request_stop();
  RunContext context;
  context.clock = RunClock::by_wall(HUGE_VAL, source.get_token());
  const std::vector<double> radii{0.1, 0.2}, falling{0.2, 0.1};
  EXPECT_THROW(find_series(query, falling, {}, context), Error);
  EXPECT_THROW(find_series({&graph, query.norms, {}}, radii, {}, context), Error);
  for (const RadiusAnswer& one : find_series(query, radii, {}, context)) {
    EXPECT_EQ(one.answer.outcome, Outcome::kInterrupted);
    EXPECT_EQ(one.bracket.upper(Guarantee::kProved)->method, "layer-product");
    EXPECT_FALSE(std::get<CompositionProof>(*one.answer.proof).gains.empty());
  }
}

// relu at 0: all slopes between those of both sides (Clarke), the largest of which is 1.
TEST(Series, RadiusZeroIsThePointAndAKinkCountsWithBothSides) {
  testing_support::GraphMaker m;
  const ValueId x = m.input({1, 1});
  const ValueId z = m.add("Gemm", {x, m.weights({1, 2}, {3, -2})});
  const Graph graph = m.finish(m.add("Gemm", {m.add("Relu", {z}), m.weights({2, 1}, {1, 1})}));
  const auto constant_at = [&](double at) {
    const Query query{&graph,
                      parse_norms("2"),
                      {.ball = Ball{Tensor::vector(std::vector<double>{at}), 0, Norm(2)}}};
    return proved_upper(find_bracket(query, {}, counted()).bracket);
  };
  EXPECT_NEAR(constant_at(1), 3, 1e-6);
  EXPECT_NEAR(constant_at(-1), 2, 1e-6);
  EXPECT_GE(constant_at(0), 3);
  EXPECT_NEAR(constant_at(0), 3, 1e-6);
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "attention/study.h"

#include <gtest/gtest.h>

#include "attention/attention_graphs_for_test.h"
#include "attention/head_weights.h"

namespace lipscope {
namespace {

using namespace testing_support;

AttentionReport study(const Graph& graph, std::optional<double> radius = {},
                      TokenNorm ball = TokenNorm::kFrobenius) {
  Rng rng(4);
  std::vector<Tensor> inputs;
  for (const ValueId id : graph.inputs())
    inputs.push_back(random_tensor(rng, graph.value(id).type.shape));
  AttentionQuery question;
  question.norms = {parse_norms("2")};
  question.radius = radius;
  question.ball = ball;
  return study_attention(graph, inputs, question, "test", *RunClock::by_wall(HUGE_VAL));
}

void expect_tight(const std::optional<Bound>& lower, const std::optional<Bound>& upper) {
  ASSERT_TRUE(lower && upper);
  EXPECT_EQ(lower->guarantee, Guarantee::kProved);
  EXPECT_EQ(upper->guarantee, Guarantee::kProved);
  EXPECT_LE(lower->value, upper->value);
  EXPECT_LE(upper->value, lower->value * (1 + 1e-7));
  EXPECT_GT(lower->value, 0);
}

// The theorems and the generic derivatives are two ways to the same norms.
TEST(StudyAttention, BothWaysAgree) {
  for (const AttentionSpelling& spelling :
       {AttentionSpelling{}, AttentionSpelling{.scale_queries = true, .causal = true},
        AttentionSpelling{.bias = false, .output = false}, AttentionSpelling{.keys_first = true},
        AttentionSpelling{.rotary = true}, AttentionSpelling{.where = true},
        AttentionSpelling{.cross = true}, AttentionSpelling{.turned = true}}) {
    const Graph graph = attention_graph(spelling);
    const AttentionReport report = study(graph);
    ASSERT_EQ(report.blocks.size(), 1u);
    const BlockReport& block = report.blocks[0];
    const bool theorems =
        !spelling.rotary && !spelling.where && !spelling.cross && !spelling.turned;
    EXPECT_EQ(block.outside.empty(), theorems) << block.outside;
    expect_tight(report.lower, report.upper);
    expect_tight(block.lower, block.upper);
    for (const HeadReport& head : block.heads) {
      expect_tight(head.lower, head.upper);
      EXPECT_EQ(head.bounds.empty(), !theorems);
    }
  }
}

TEST(StudyAttention, WeightsAreReadFromTheGraph) {
  const Graph graph = attention_graph({.causal = true});
  const AttentionBlock block = find_attention(graph).at(0);
  const auto found = head_weights(graph, block);
  ASSERT_TRUE(std::holds_alternative<std::vector<HeadWeights>>(found))
      << std::get<std::string>(found);
  const auto& heads = std::get<std::vector<HeadWeights>>(found);
  ASSERT_EQ(heads.size(), 2u);
  Rng rng(9);
  const Tensor x = random_tensor(rng, {1, 3, 4});
  const Trace trace(graph, std::vector{x});
  const Tensor& mixed = trace.value(block.mixed);
  const HeadPlaces places = mixed_places(block);
  for (Index h = 0; h < 2; ++h) {
    const HeadAt at(heads[static_cast<std::size_t>(h)], {x.doubles().begin(), x.doubles().end()});
    for (Index i = 0; i < 3; ++i) {
      for (Index c = 0; c < 2; ++c)
        EXPECT_NEAR(midpoint(at.mixed()(i, c)), mixed.at(places(h, i, c)), 1e-12);
    }
  }
}

TEST(StudyAttention, BallsOfTokens) {
  const AttentionReport report = study(attention_graph({}), 0.01);
  for (const HeadReport& head : report.blocks[0].heads) {
    ASSERT_TRUE(head.ball_upper);
    EXPECT_GE(head.ball_upper->value, head.lower->value);
    EXPECT_LE(head.ball_upper->value, 2 * head.upper->value);
  }
  ASSERT_TRUE(report.blocks[0].ball_upper);
  EXPECT_GE(report.blocks[0].ball_upper->value, report.blocks[0].lower->value);
}

// Both ends of a bracket are in the norm of the ball.
TEST(StudyAttention, BallsOfTokenMax) {
  const Graph graph = attention_graph({});
  const AttentionReport l2 = study(graph, 0.01);
  const AttentionReport each = study(graph, 0.01, TokenNorm::kTokenMax);
  for (std::size_t h = 0; h < each.blocks[0].heads.size(); ++h) {
    const HeadReport& head = each.blocks[0].heads[h];
    ASSERT_TRUE(head.ball_lower && head.ball_upper);
    EXPECT_EQ(head.ball_lower->guarantee, Guarantee::kProved);
    EXPECT_LE(head.ball_lower->value, head.ball_upper->value);
    EXPECT_GE(head.ball_lower->value, 0.5 * head.ball_upper->value);
    EXPECT_NE(head.ball_lower->value, l2.blocks[0].heads[h].ball_lower->value);
  }
  EXPECT_FALSE(each.blocks[0].ball_lower);
  EXPECT_FALSE(each.ball_lower);
}

}  // namespace
}  // namespace lipscope

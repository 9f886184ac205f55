// SPDX-License-Identifier: Apache-2.0
#include "attention/find.h"

#include <gtest/gtest.h>

#include <functional>

#include "attention/attention_graphs_for_test.h"
#include "attention/head_weights.h"

namespace lipscope {
namespace {

using namespace testing_support;

AttentionBlock only_block(const AttentionSpelling& spelling) {
  const auto blocks = find_attention(attention_graph(spelling));
  EXPECT_EQ(blocks.size(), 1u);
  return blocks.empty() ? AttentionBlock{} : blocks[0];
}

TEST(FindAttention, PlainSelfAttention) {
  const AttentionBlock block = only_block({});
  EXPECT_EQ(block.kind, AttentionKind::kSelf);
  EXPECT_EQ(block.heads, 2);
  EXPECT_EQ(block.rows, 3);
  EXPECT_EQ(block.columns, 3);
  EXPECT_EQ(block.key_width, 2);
  EXPECT_EQ(block.value_width, 2);
  EXPECT_FALSE(block.masked);
  EXPECT_TRUE(block.residual);
  ASSERT_TRUE(block.scale.has_value());
  EXPECT_NEAR(block.scale->lo, 1 / std::sqrt(2.0), 1e-6);
  ASSERT_EQ(block.sources.size(), 1u);
}

TEST(FindAttention, SourceIsTheInput) {
  const Graph graph = attention_graph({});
  const AttentionBlock block = find_attention(graph).at(0);
  EXPECT_EQ(block.sources[0], graph.inputs()[0]);
  EXPECT_EQ(graph.value(block.output).type.shape, (Shape{1, 3, 4}));
}

TEST(FindAttention, ScaleOnTheQueries) {
  const AttentionBlock block = only_block({.scale_queries = true});
  EXPECT_EQ(block.kind, AttentionKind::kSelf);
  EXPECT_EQ(*block.scale, point(1));
}

TEST(FindAttention, CausalMask) {
  const AttentionBlock block = only_block({.causal = true});
  EXPECT_TRUE(block.masked);
  EXPECT_TRUE(block.causal);
}

TEST(FindAttention, KeysHiddenByWhere) {
  const AttentionBlock block = only_block({.where = true});
  EXPECT_TRUE(block.masked);
  EXPECT_FALSE(block.causal);
  EXPECT_EQ(block.to_scores.source[2], -1);
  EXPECT_GE(block.to_scores.source[1], 0);
}

TEST(FindAttention, KeysAsTheFirstFactor) {
  const Graph graph = attention_graph({.tokens = 3, .keys_first = true});
  const auto blocks = find_attention(graph);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].query_side, 1);
  EXPECT_EQ(blocks[0].kind, AttentionKind::kSelf);
}

TEST(FindAttention, RotaryIsAffineInTheTokens) {
  EXPECT_EQ(only_block({.rotary = true}).kind, AttentionKind::kSelf);
}

TEST(FindAttention, CrossAttention) {
  const AttentionBlock block = only_block({.cross = true});
  EXPECT_EQ(block.kind, AttentionKind::kCross);
  EXPECT_EQ(block.sources.size(), 2u);
}

TEST(FindAttention, OneToken) {
  const AttentionBlock block = only_block({.tokens = 1});
  EXPECT_EQ(block.rows, 1);
  EXPECT_EQ(block.columns, 1);
  EXPECT_EQ(block.heads, 2);
}

TEST(FindAttention, AClassifierHasNone) {
  GraphMaker maker;
  const ValueId x = maker.input({1, 4});
  const ValueId y = maker.add("MatMul", {x, maker.weights({4, 3}, std::vector<double>(12, 0.5))});
  EXPECT_TRUE(find_attention(maker.finish(maker.add("Softmax", {y}))).empty());
}

TEST(FindAttention, DistancesByExpansion) {
  GraphMaker maker;
  const ValueId x = maker.input({1, 3, 2});
  const ValueId q = maker.add("MatMul", {x, maker.weights({2, 2}, {1, 2, 3, 4})});
  const auto turned = [&](ValueId id) {
    return maker.add("Transpose", {id}, {{"perm", std::vector<Index>{0, 2, 1}}});
  };
  const ValueId squares = maker.add("Mul", {q, q});
  const ValueId length = maker.add("ReduceSum", {squares, maker.integers({2})});
  const ValueId twice =
      maker.add("Mul", {maker.add("MatMul", {q, turned(q)}), maker.weights({}, {2})});
  const ValueId scores = maker.add("Sub", {maker.add("Sub", {twice, length}), turned(length)});
  const ValueId weights = maker.add("Softmax", {scores}, {{"axis", Index{2}}});
  const auto blocks = find_attention(maker.finish(maker.add("MatMul", {weights, x})));
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].kind, AttentionKind::kDistance);
}

TEST(FindAttention, NormalisedQueriesAndKeys) {
  for (const bool cosine : {true, false}) {
    GraphMaker maker;
    const ValueId x = maker.input({1, 3, 4});
    const auto unit = [&](ValueId id) {
      if (cosine) return maker.add("LpNormalization", {id}, {{"axis", Index{2}}, {"p", Index{2}}});
      return maker.add("LayerNormalization", {id, maker.weights({4}, {1, 1, 1, 1})}, {}, 17);
    };
    const ValueId w = maker.weights({4, 4}, std::vector<double>(16, 0.25));
    const ValueId q = unit(maker.add("MatMul", {x, w})), k = unit(x);
    const ValueId turned = maker.add("Transpose", {k}, {{"perm", std::vector<Index>{0, 2, 1}}});
    const ValueId scores = maker.add("MatMul", {q, turned});
    const ValueId weights = maker.add("Softmax", {scores}, {{"axis", Index{2}}});
    const auto blocks = find_attention(maker.finish(maker.add("MatMul", {weights, x})));
    ASSERT_EQ(blocks.size(), 1u);
    EXPECT_EQ(blocks[0].kind, cosine ? AttentionKind::kCosine : AttentionKind::kNormalised);
  }
}

// Attention of two tokens of width 2, with steps of its own between its parts.
struct OddAttention {
  using Step = std::function<ValueId(GraphMaker&, ValueId)>;
  using Softmax = std::function<ValueId(GraphMaker&, ValueId)>;

  static ValueId plain_softmax(GraphMaker& maker, ValueId scores) {
    return maker.add("Softmax", {scores}, {{"axis", Index{1}}});
  }
  static ValueId slice(GraphMaker& maker, ValueId x, Index from, Index to) {
    return maker.add("Slice",
                     {x, maker.integers({from}), maker.integers({to}), maker.integers({1})});
  }
  // 1 where an entry of the tokens is positive.
  static ValueId step(GraphMaker& maker, ValueId x) {
    const ValueId positive = maker.add("Greater", {x, maker.weights({}, {0})});
    return maker.add("Cast", {positive}, {{"to", Index{1}}});
  }

  Softmax weights = plain_softmax;
  bool step_in_query = false, step_in_weights = false;

  [[nodiscard]] Graph make() const {
    GraphMaker maker;
    const ValueId x = maker.input({2, 2});
    const auto projected = [&](std::vector<double> entries) {
      return maker.add("MatMul", {x, maker.weights({2, 2}, std::move(entries))});
    };
    ValueId q = projected({1, 2, 3, 4});
    if (step_in_query) q = maker.add("Add", {q, step(maker, x)});
    const ValueId turned =
        maker.add("Transpose", {projected({1, 0, 0, 1})}, {{"perm", std::vector<Index>{1, 0}}});
    ValueId mixing = weights(maker, maker.add("MatMul", {q, turned}));
    if (step_in_weights) mixing = maker.add("Add", {mixing, step(maker, x)});
    return maker.finish(maker.add("MatMul", {mixing, projected({0, 1, 1, 0})}));
  }
};

bool theorems_cover(const OddAttention& odd) {
  const Graph graph = odd.make();
  const auto blocks = find_attention(graph);
  return blocks.size() == 1 &&
         std::holds_alternative<std::vector<HeadWeights>>(head_weights(graph, blocks[0]));
}

TEST(FindAttention, RowsOfTheSoftmaxAreTheScoresOfOneQuery) {
  ASSERT_TRUE(theorems_cover({}));
  // Below opset 13 all that follows the axis is one row: here all scores.
  const auto all = [](GraphMaker& maker, ValueId scores) {
    return maker.add("Softmax", {scores}, {{"axis", Index{0}}}, 11);
  };
  EXPECT_TRUE(find_attention(OddAttention{.weights = all}.make()).empty());
  const auto beside = [](GraphMaker& maker, ValueId other, ValueId scores) {
    const ValueId both = maker.add("Concat", {other, scores}, {{"axis", Index{1}}});
    return OddAttention::slice(maker, OddAttention::plain_softmax(maker, both), 2, 4);
  };
  // Rows that hold the scores of another query, the same scores twice, numbers, or a key twice.
  const auto another = [&](GraphMaker& maker, ValueId scores) {
    const ValueId other =
        maker.add("Gather", {scores, maker.integers({1, 0})}, {{"axis", Index{0}}});
    return beside(maker, other, scores);
  };
  const auto twice = [&](GraphMaker& maker, ValueId scores) {
    return beside(maker, scores, scores);
  };
  const auto numbers = [&](GraphMaker& maker, ValueId scores) {
    return beside(maker, maker.weights({2, 2}, {0, 0, 0, 0}), scores);
  };
  const auto one_key = [](GraphMaker& maker, ValueId scores) {
    return OddAttention::plain_softmax(
        maker, maker.add("Gather", {scores, maker.integers({0, 0})}, {{"axis", Index{1}}}));
  };
  for (const OddAttention::Softmax& odd :
       {OddAttention::Softmax(another), OddAttention::Softmax(twice),
        OddAttention::Softmax(numbers), OddAttention::Softmax(one_key)})
    EXPECT_TRUE(find_attention(OddAttention{.weights = odd}.make()).empty());
}

TEST(FindAttention, WhatJumpsWithTheTokensIsNotConstant) {
  EXPECT_FALSE(theorems_cover({.step_in_query = true}));
  EXPECT_FALSE(theorems_cover({.step_in_weights = true}));
}

}  // namespace
}  // namespace lipscope

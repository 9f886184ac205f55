// SPDX-License-Identifier: Apache-2.0
#include "attention/special_heads.h"

#include <gtest/gtest.h>

#include "attention/attention_graphs_for_test.h"
#include "attention/study.h"

namespace lipscope {
namespace {

using namespace testing_support;

constexpr Index kTokens = 4, kWidth = 4;

struct SpecialSpelling {
  bool cosine = false;
  Index heads = 1;
  bool tied = true;         // L2: queries and keys are one
  double squares = 1;       // L2: factor of |y_j|^2
  bool values_of_y = true;  // L2: values are made of y
  bool unit_values = true;  // cosine: values are normalised, too
  bool mask = false;
  bool bias = false;
  double epsilon = 0.1;
  double scale = 0.7;
  double size = 1;  // of the weights
  unsigned seed = 1;
};

Graph special_graph(const SpecialSpelling& s) {
  Rng rng(s.seed);
  GraphMaker m;
  const Index inner = kWidth / s.heads;
  const auto number = [&](double v) { return m.weights({}, {v}); };
  const auto turned = [&](ValueId id) {
    return m.add("Transpose", {id}, {{"perm", std::vector<Index>{0, 1, 3, 2}}});
  };
  const auto split = [&](ValueId id) {
    id = m.add("Reshape", {id, m.integers({1, kTokens, s.heads, inner})});
    return m.add("Transpose", {id}, {{"perm", std::vector<Index>{0, 2, 1, 3}}});
  };
  const auto projected = [&](ValueId id) {
    const ValueId w = m.weights(random_tensor(rng, {kWidth, kWidth}, -s.size, s.size));
    id = m.add("MatMul", {id, w});
    return s.bias ? m.add("Add", {id, m.weights(random_tensor(rng, {kWidth}))}) : id;
  };
  const auto lengths = [&](ValueId id) {
    return m.add("ReduceSum", {m.add("Mul", {id, id}), m.integers({3})});
  };
  const auto unit = [&](ValueId id) {
    const ValueId length = m.add("Add", {lengths(id), number(s.epsilon)});
    return m.add("Div", {id, m.add("Sqrt", {length})});
  };
  const ValueId x = m.input({1, kTokens, kWidth});
  ValueId scores{}, v{};
  if (s.cosine) {
    const ValueId q = unit(split(projected(x))), k = unit(split(projected(x)));
    v = split(projected(x));
    if (s.unit_values) v = m.add("Mul", {unit(v), number(1.5)});
    scores = m.add("MatMul", {m.add("Mul", {q, number(s.scale)}), turned(k)});
  } else {
    const ValueId y = projected(x), q = split(y), k = s.tied ? q : split(projected(x));
    // Every head has its own block of the weights of values.
    const ValueId blocks = m.weights(random_tensor(rng, {1, s.heads, inner, inner}, -1, 1));
    v = s.values_of_y ? m.add("MatMul", {q, blocks}) : split(projected(x));
    const ValueId twice = m.add("Mul", {m.add("MatMul", {q, turned(k)}), number(2)});
    const ValueId columns = m.add("Mul", {turned(lengths(k)), number(s.squares)});
    scores = m.add("Sub", {m.add("Sub", {twice, lengths(q)}), columns});
    scores = m.add("Div", {scores, number(s.scale)});
  }
  if (s.mask) {
    std::vector<double> mask(kTokens * kTokens, 0.0);
    mask[1] = -1e9;
    scores = m.add("Add", {scores, m.weights({1, 1, kTokens, kTokens}, mask)});
  }
  const ValueId p = m.add("Softmax", {scores}, {{"axis", Index{3}}});
  return m.finish(m.add("MatMul", {p, v}));
}

AttentionReport special_study(const Graph& graph, const Tensor& x) {
  AttentionQuery question;
  question.norms = {parse_norms("2")};
  return study_attention(graph, std::vector{x}, question, "test", *RunClock::by_wall(HUGE_VAL));
}

// The norm of each head at random points, and at points found by a random walk uphill, are below
// every bound.
void expect_never_exceeded(const SpecialSpelling& spelling, const std::string& ours,
                           const std::string& published) {
  const Graph graph = special_graph(spelling);
  const auto bounds = special_bounds(graph, find_attention(graph).at(0), graph.inputs()[0]);
  ASSERT_EQ(static_cast<Index>(bounds.size()), spelling.heads);
  for (const auto& head : bounds) {
    ASSERT_EQ(head.size(), published.empty() ? 1U : 2U);
    EXPECT_EQ(head[0].name, ours);
    EXPECT_EQ(head[0].norm, "2:2");
    EXPECT_EQ(head[0].guarantee, Guarantee::kProved);
    if (published.empty()) continue;
    EXPECT_EQ(head[1].name, published);
    EXPECT_EQ(head[1].guarantee, Guarantee::kReal);
    EXPECT_LE(head[0].value, head[1].value);
  }
  const Index part = kTokens * kWidth / spelling.heads;
  Rng rng(spelling.seed + 100);
  std::normal_distribution<double> normal;
  for (Index h = 0; h < spelling.heads; ++h) {
    std::vector<Index> rows;
    for (Index r = 0; r < part; ++r) rows.push_back(h * part + r);
    double best = 0;
    Tensor top;
    for (int trial = 0; trial < 200; ++trial) {
      Tensor x = Tensor::zeros(ElementType::kFloat64, {1, kTokens, kWidth});
      const bool climb = trial > 60;
      const double size = std::pow(10.0, std::uniform_real_distribution<double>(-2, 1)(rng));
      for (std::size_t i = 0; i < x.doubles().size(); ++i)
        x.doubles()[i] = (climb ? top.doubles()[i] : 0) + (climb ? 0.1 : 1) * size * normal(rng);
      const LocalNormEffort effort{.proof = 0, .real_rows = 0, .tolerance = 1e-6, .steps = 20};
      const LocalNorm norm = local_norm(graph, std::vector{x}, rows, effort);
      ASSERT_TRUE(norm.lower);
      for (const AttentionBound& bound : bounds[static_cast<std::size_t>(h)])
        ASSERT_LE(norm.lower->value, bound.value) << bound.name << " " << trial;
      if (norm.lower->value > best) best = norm.lower->value, top = x;
    }
    EXPECT_GT(best, 0.05 * bounds[static_cast<std::size_t>(h)][0].value);
  }
}

TEST(SpecialHeads, DistancesAreNeverExceeded) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    expect_never_exceeded({.heads = 1 + seed % 2, .size = 1.5, .seed = seed}, "distance", "kim");
    expect_never_exceeded({.bias = true, .scale = 2, .seed = seed}, "distance", "kim");
  }
}

TEST(SpecialHeads, CosinesAreNeverExceeded) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    expect_never_exceeded({.cosine = true, .heads = 1 + seed % 2, .scale = 2, .seed = seed},
                          "cosine", "qi");
    // The theorem of Qi et al. has no biases.
    expect_never_exceeded({.cosine = true, .bias = true, .seed = seed}, "cosine", "");
  }
}

std::size_t bounds_of(const SpecialSpelling& spelling) {
  Rng rng(3);
  const AttentionReport report =
      special_study(special_graph(spelling), random_tensor(rng, {1, kTokens, kWidth}));
  EXPECT_EQ(report.blocks.size(), 1U);
  return report.blocks.at(0).heads.at(0).bounds.size();
}

TEST(SpecialHeads, OtherBlocksHaveNone) {
  EXPECT_EQ(bounds_of({}), 2U);
  EXPECT_EQ(bounds_of({.tied = false}), 0U);
  EXPECT_EQ(bounds_of({.squares = 1.25}), 0U);
  EXPECT_EQ(bounds_of({.squares = -1}), 0U);
  EXPECT_EQ(bounds_of({.scale = -1}), 0U);  // farther tokens count more
  EXPECT_EQ(bounds_of({.values_of_y = false}), 0U);
  EXPECT_EQ(bounds_of({.mask = true}), 0U);
  EXPECT_EQ(bounds_of({.cosine = true}), 2U);
  EXPECT_EQ(bounds_of({.cosine = true, .mask = true}), 0U);
  EXPECT_EQ(bounds_of({.cosine = true, .unit_values = false}), 0U);
}

// Cosine attention as first printed leaves the values as they are: norms grow without limit.
TEST(SpecialHeads, CosinesWithPlainValuesHaveNoConstant) {
  double last = 0;
  for (const double t : {1.0, 100.0, 10000.0}) {
    GraphMaker m;
    const ValueId x = m.input({1, 3, 2});
    const ValueId squares = m.add("ReduceSum", {m.add("Mul", {x, x}), m.integers({2})});
    const ValueId root = m.add("Sqrt", {m.add("Add", {squares, m.weights({}, {1e-2})})});
    const ValueId unit = m.add("Div", {x, root});
    const ValueId turned = m.add("Transpose", {unit}, {{"perm", std::vector<Index>{0, 2, 1}}});
    const ValueId p = m.add("Softmax", {m.add("MatMul", {unit, turned})}, {{"axis", Index{2}}});
    const Graph graph = m.finish(m.add("MatMul", {p, x}));
    const Tensor at(ElementType::kFloat64, {1, 3, 2}, std::vector<double>{0, 0, 0, t, t, 0});
    const AttentionReport report = special_study(graph, at);
    EXPECT_TRUE(report.blocks.at(0).heads.at(0).bounds.empty());
    EXPECT_GT(report.lower->value, 30 * last);
    last = report.lower->value;
  }
  EXPECT_GT(last, 1000);
}

}  // namespace
}  // namespace lipscope

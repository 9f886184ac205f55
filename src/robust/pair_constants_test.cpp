// SPDX-License-Identifier: Apache-2.0
#include "robust/pair_constants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "base/rounding.h"
#include "estimate/jacobian_norm.h"
#include "lipscope/evaluate.h"
#include "lipscope/sample_rounds.h"
#include "lipscope/select.h"
#include "robust/last_layer.h"
#include "robust/margin_needs.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;

RunContext by_work() { return {.clock = RunClock::by_work(0.05)}; }

// Some layers of ReLU, then one affine one.
Graph some_classifier(Rng& rng, Index in, Index width, int hidden, Index classes) {
  GraphMaker m;
  ValueId x = m.input({1, in});
  Index n = in;
  for (int k = 0; k < hidden; ++k) {
    x = m.add("Relu", {m.add("Gemm", {x, m.weights(random_tensor(rng, {n, width}, -1, 1)),
                                      m.weights(random_tensor(rng, {width}, -1, 1))})});
    n = width;
  }
  return m.finish(m.add("Gemm", {x, m.weights(random_tensor(rng, {n, classes}, -1, 1)),
                                 m.weights(random_tensor(rng, {classes}, -1, 1))}));
}

Bound bound_of_margin(const Graph& graph, Index i, Index j, const Norm& norm,
                      const std::vector<std::string>& methods) {
  Selection row;
  row.margin = {i, j};
  const Graph margin = select(graph, row).graph;
  return *find_bracket({&margin, {norm, norm}, {}}, {.methods = methods}, by_work())
              .bracket.upper(Guarantee::kProved);
}

TEST(LastLayer, IsCutOff) {
  Rng rng(3);
  const Graph graph = some_classifier(rng, 4, 6, 2, 3);
  const auto layer = split_last_layer(graph);
  ASSERT_TRUE(layer);
  EXPECT_EQ(layer->rows.rows, 3);
  EXPECT_EQ(layer->rows.cols, 6);
  // The rows on what the cut graph computes are the logits but for their biases, which cancel in
  // differences of two inputs.
  const auto logits = [&](const Tensor& x) { return evaluate(graph, std::vector{x})[0]; };
  const auto before = [&](const Tensor& x) { return evaluate(layer->before, std::vector{x})[0]; };
  const Tensor x = random_tensor(rng, {1, 4}, -1, 1), y = random_tensor(rng, {1, 4}, -1, 1);
  for (Index i = 0; i < 3; ++i) {
    double moved = 0;
    layer->rows.for_row(i, [&](Index column, std::size_t at) {
      moved += layer->rows.weights[at] * (before(x).at(column) - before(y).at(column));
    });
    EXPECT_NEAR(moved, logits(x).at(i) - logits(y).at(i), 1e-9);
  }
}

TEST(LastLayer, IsNoneWhereTheLastNodeIsNotAffine) {
  GraphMaker m;
  const ValueId x = m.input({1, 3});
  EXPECT_FALSE(split_last_layer(m.finish(m.add("Relu", {x}))));
  GraphMaker two;
  const ValueId y = two.input({1, 3});
  EXPECT_FALSE(split_last_layer(two.finish(two.add("Mul", {y, two.add("Relu", {y})}))));
}

TEST(LastLayer, NormsOfDifferencesAreDual) {
  const RowMatrix rows{2, 2, {3, 0, 0, 4}, {}, {}, {}};
  EXPECT_NEAR(difference_norm_up(rows, 0, 1, Norm(2)), 5, 1e-12);
  EXPECT_NEAR(difference_norm_up(rows, 0, 1, Norm::infinity()), 7, 1e-12);
  EXPECT_NEAR(difference_norm_up(rows, 0, 1, Norm(1)), 4, 1e-12);
  RowMatrix doubtful = rows;
  doubtful.radius = {1, 0, 0, 1};
  EXPECT_GE(difference_norm_up(doubtful, 0, 1, Norm::infinity()), 9);
}

// No constant is below the gradient anywhere, and none above the product of norms.
TEST(PairConstants, HoldAndAreNoWorseThanProducts) {
  Rng rng(5);
  for (const Norm& norm : {Norm(2), Norm::infinity(), Norm(1), Norm(3)}) {
    const Graph graph = some_classifier(rng, 5, 12, 2, 4);
    const PairConstants found = pair_constants(graph, norm, 1, by_work(), nullptr);
    ASSERT_EQ(found.upper.size(), 6U);
    for (Index i = 0; i < 4; ++i) {
      for (Index j = i + 1; j < 4; ++j) {
        const double product = bound_of_margin(graph, i, j, norm, {"layer-product"}).value;
        EXPECT_LE(found.at(i, j).value, product * (1 + 1e-9));
        for (int k = 0; k < 50; ++k) {
          const Tensor x = random_tensor(rng, {1, 5}, -2, 2);
          const Tensor y = random_tensor(rng, {1, 5}, -2, 2);
          const Tensor f = evaluate(graph, std::vector{x})[0],
                       g = evaluate(graph, std::vector{y})[0];
          std::vector<double> step;
          for (Index e = 0; e < 5; ++e) step.push_back(x.at(e) - y.at(e));
          const double moved = std::fabs((f.at(i) - f.at(j)) - (g.at(i) - g.at(j)));
          EXPECT_LE(moved, found.at(i, j).value * vector_norm(step, norm) * (1 + 1e-9));
        }
      }
    }
  }
}

TEST(PairConstants, OfMarginsInEuclidAreThoseOfTheSemidefiniteBound) {
  Rng rng(6);
  const Graph graph = some_classifier(rng, 6, 56, 2, 3);  // no small model
  const PairConstants found = pair_constants(graph, Norm(2), 20, by_work(), nullptr);
  for (Index i = 0; i < 3; ++i) {
    for (Index j = i + 1; j < 3; ++j) {
      const double best = bound_of_margin(graph, i, j, Norm(2), {"lipsdp"}).value;
      EXPECT_LE(found.at(i, j).value, 1.002 * best);
      EXPECT_GE(found.at(i, j).value, 0.99 * best) << found.at(i, j).method;
    }
  }
}

TEST(PairConstants, DoNotDependOnNeedsUnderABudgetOfWork) {
  Rng rng(7);
  const Graph graph = some_classifier(rng, 6, 20, 2, 4);
  LogitTable logits;
  for (const double z : {3.0, 1.0, 0.5, 0.0}) logits.entries.push_back(point(z));
  const std::vector<Index> labels{0};
  const std::vector<double> radii{0.1};
  const MarginNeeds needs(logits, labels, radii, 4);
  const PairConstants with = pair_constants(graph, Norm(2), 0.2, by_work(), &needs);
  const PairConstants without = pair_constants(graph, Norm(2), 0.2, by_work(), nullptr);
  for (std::size_t k = 0; k < 6; ++k) EXPECT_EQ(with.upper[k].value, without.upper[k].value);
}

TEST(PairConstants, CheapOnesAreFoundOnceAndGoneOnFrom) {
  Rng rng(9);
  const Graph graph = some_classifier(rng, 6, 56, 2, 4);
  PairConstants known = cheap_pair_constants(graph, Norm(2), 0, by_work());
  for (const Bound& bound : known.upper) EXPECT_TRUE(std::isfinite(bound.value));
  EXPECT_FALSE(known.finished);
  for (Bound& bound : known.upper)
    bound.value *= 1e3;  // would be found again where it is looked for
  const PairConstants found = pair_constants(graph, Norm(2), 0, by_work(), nullptr, &known);
  for (std::size_t k = 0; k < known.upper.size(); ++k)
    EXPECT_EQ(found.upper[k].value, known.upper[k].value);
}

TEST(PairConstants, ThatNobodyNeedsAreThoseOfAllLogitsForAnyNumberOfThreads) {
  Rng rng(8);
  const Graph graph = some_classifier(rng, 6, 56, 2, 4);
  LogitTable logits;
  for (const double z : {3.0, 2.9, -90.0, -90.0}) logits.entries.push_back(point(z));
  const std::vector<Index> labels{0};
  const std::vector<double> radii{1e-3};
  const MarginNeeds needs(logits, labels, radii, 4);
  const Query all{&graph, {Norm(2), Norm(2)}, {}};
  const double shared = find_bracket(all, {.methods = {"lipsdp"}}, by_work())
                            .bracket.upper(Guarantee::kProved)
                            ->value;
  const int before = threads();
  for (const int count : {1, 2}) {
    set_threads(count);
    const PairConstants found =
        pair_constants(graph, Norm(2), 1e6, {.clock = RunClock::by_wall(HUGE_VAL)}, &needs);
    for (Index j = 2; j < 4; ++j) {
      EXPECT_EQ(found.at(0, j).method, "lipsdp");
      EXPECT_NEAR(found.at(0, j).value, std::sqrt(2) * shared, 0.01 * shared);
    }
    EXPECT_LT(found.at(0, 1).value, found.at(0, 2).value);
  }
  set_threads(before);
}

TEST(MarginNeeds, NameThePairsThatStandInTheWay) {
  // Margins 1 and 2 of class 0; class 1 is not right.
  LogitTable logits;
  for (const double z : {3.0, 2.0, 1.0, 0.0, 5.0, 9.0}) logits.entries.push_back(point(z));
  const std::vector<Index> labels{0, 1};
  PairConstants constants;
  constants.classes = 3;
  constants.upper.assign(3, {10, Guarantee::kProved, "m"});  // radius 0.1
  const auto weights = [&](std::vector<double> radii, double hope) {
    return MarginNeeds(logits, labels, radii, 3).weights(constants, hope);
  };
  const auto near = weights({0.15}, 0.5);
  EXPECT_GT(near[0], 0.9);
  EXPECT_LT(near[1], 0.01);
  const auto both = weights({0.25}, 0.3);  // both margins stand in the way of 0.25
  EXPECT_NEAR(both[0], 0.501, 1e-9);
  EXPECT_NEAR(both[1], 0.5, 1e-9);
  EXPECT_LT(weights({0.25}, 0.9)[0], 0.01);  // no hope
  EXPECT_LT(weights({0.05}, 0.5)[0], 0.01);  // certified already
  EXPECT_EQ(near[2], 0);
}

class SampleRoundsTest : public testing::Test {
 protected:
  SampleRoundsTest() : graph_(some_classifier(rng_, 4, 10, 2, 3)), certifier_(graph_, {}) {
    certifier_.find_constants(std::chrono::seconds(1), by_work());
    for (int s = 0; s < 12; ++s) {
      const Tensor x = random_tensor(rng_, {1, 4}, -1, 1);
      points_.insert(points_.end(), x.doubles().begin(), x.doubles().end());
      const Tensor f = evaluate(graph_, std::vector{x})[0];
      labels_.push_back(std::ranges::max_element(f.doubles()) - f.doubles().begin());
    }
    labels_[3] = (labels_[3] + 1) % 3;  // not right
  }
  std::vector<SampleWork> work(std::size_t from, std::size_t to, const SampleHooks& hooks = {}) {
    const auto points = std::span(points_).subspan(4 * from, 4 * (to - from));
    const auto labels = std::span(labels_).subspan(from, to - from);
    std::vector<SampleWork> samples;
    for (const Decision& d : certifier_.decide(points, labels)) samples.push_back({.decision = d});
    const SampleSet set{points, labels, radii_, true, false, 4};
    certify_samples(certifier_, set, *RunClock::by_work(0.5), 0, hooks, samples);
    return samples;
  }

  Rng rng_{11};
  Graph graph_;
  Certifier certifier_;
  std::vector<double> points_, radii_{0.02, 0.1, 0.3};
  std::vector<Index> labels_;
};

TEST_F(SampleRoundsTest, RadiiAreAtLeastThoseOfTheConstantsAndBelowAttacks) {
  const std::vector<Decision> global = certifier_.decide(points_, labels_);
  const std::vector<SampleWork> local = work(0, 12);
  for (std::size_t s = 0; s < 12; ++s) {
    EXPECT_GE(local[s].decision.radius, global[s].radius);
    EXPECT_TRUE(local[s].complete);
    EXPECT_LE(local[s].decision.radius, local[s].decision.attack_radius.value_or(HUGE_VAL));
  }
  EXPECT_EQ(local[3].decision.radius, 0);
}

TEST_F(SampleRoundsTest, ASampleDoesNotNoticeTheOthersUnderABudgetOfWork) {
  const std::vector<SampleWork> all = work(0, 12);
  for (std::size_t s = 0; s < 12; ++s) {
    const SampleWork alone = work(s, s + 1)[0];
    EXPECT_EQ(alone.decision.radius, all[s].decision.radius);
    EXPECT_EQ(alone.decision.attack_radius, all[s].decision.attack_radius);
    EXPECT_EQ(alone.decision.method, all[s].decision.method);
  }
}

TEST_F(SampleRoundsTest, WithoutTimeNothingIsLostAndTheRestFollows) {
  std::vector<SampleWork> samples;
  for (const Decision& d : certifier_.decide(points_, labels_)) samples.push_back({.decision = d});
  const std::vector<SampleWork> before = samples;
  const SampleSet set{points_, labels_, radii_, true, false, 4};
  EXPECT_FALSE(certify_samples(certifier_, set, *RunClock::by_wall(HUGE_VAL), 0, {}, samples));
  for (std::size_t s = 0; s < 12; ++s)
    EXPECT_EQ(samples[s].decision.radius, before[s].decision.radius);
  EXPECT_TRUE(
      certify_samples(certifier_, set, *RunClock::by_wall(HUGE_VAL), HUGE_VAL, {}, samples));
  for (const SampleWork& sample : samples) EXPECT_TRUE(sample.complete);
}

TEST_F(SampleRoundsTest, OneBallIsProvedOrNot) {
  std::vector<Decision> found = certifier_.decide(points_, labels_);
  for (std::size_t s = 0; s < 12; ++s) {
    if (s == 3) continue;
    const auto point = std::span(points_).subspan(4 * s, 4);
    Decision tried = found[s];
    const auto never = [] { return false; };
    if (certifier_.prove(point, 1.5 * found[s].radius, BallDepth::kWhole, tried, never)) {
      EXPECT_EQ(tried.radius, 1.5 * found[s].radius);
      EXPECT_EQ(tried.method, "linear-bounds");
    } else {
      EXPECT_EQ(tried.radius, found[s].radius);
    }
    EXPECT_FALSE(certifier_.prove(point, 1000, BallDepth::kCases, tried, never));
  }
}

}  // namespace
}  // namespace lipscope

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
#include "net/problem.h"
#include "robust/last_layer.h"
#include "robust/margin_needs.h"
#include "robust/shared_margins.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;

RunContext by_work() { return {.clock = RunClock::by_work(0.05)}; }

PairConstants pair_constants(const Graph& graph, const Norm& norm, double seconds,
                             const RunContext& context, const MarginNeeds* needs,
                             const PairConstants* known = nullptr) {
  Problem problem({.graph = &graph});
  return pair_constants(problem, norm, seconds, context, needs, known);
}

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

double constant_of_all_logits(const Graph& graph) {
  const Query all{&graph, {Norm(2), Norm(2)}, {}};
  return find_bracket(all, {.methods = {"lipsdp"}}, by_work())
      .bracket.upper(Guarantee::kProved)
      ->value;
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

// Margins 1 and 1.1 with constants 2: both stand in the way of the radius 0.6, the first of 0.52.
TEST(MarginNeeds, WhatASettledPairPreventsCountsForNothing) {
  LogitTable logits;
  for (const double z : {2.1, 1.1, 1.0}) logits.entries.push_back(point(z));
  const std::vector<Index> labels{0};
  const std::vector<double> radii{0.52, 0.6};
  const MarginNeeds needs(logits, labels, radii, 3);
  PairConstants constants;
  constants.classes = 3;
  constants.upper.assign(3, {2, Guarantee::kProved, "given"});
  const auto weights = [&](const std::vector<bool>& settled) {
    return needs.weights(constants, 0.5, settled);
  };
  EXPECT_NEAR(weights({})[0], 1.5, 0.01);  // of 0, 1
  EXPECT_NEAR(weights({})[1], 0.5, 0.01);  // of 0, 2
  EXPECT_NEAR(weights({false, true, false})[0], 1, 0.01);
  EXPECT_EQ(weights({false, true, false})[1], 0);
  EXPECT_LT(weights({true, false, false})[0], 0.01);
  EXPECT_EQ(weights({true, false, false})[1], 0);
}

TEST(PairConstants, CheapOnesAreFoundOnceAndGoneOnFrom) {
  Rng rng(9);
  const Graph graph = some_classifier(rng, 6, 56, 2, 4);
  Problem problem({.graph = &graph});
  PairConstants known = cheap_pair_constants(problem, Norm(2), 0, by_work());
  for (const Bound& bound : known.upper) EXPECT_TRUE(std::isfinite(bound.value));
  EXPECT_FALSE(known.finished);
  for (Bound& bound : known.upper)
    bound.value *= 1e3;  // would be found again where it is looked for
  const PairConstants found = pair_constants(graph, Norm(2), 0, by_work(), nullptr, &known);
  for (std::size_t k = 0; k < known.upper.size(); ++k)
    EXPECT_EQ(found.upper[k].value, known.upper[k].value);
}

TEST(PairConstants, ThatNobodyNeedsAreSharedOnesForAnyNumberOfThreads) {
  Rng rng(8);
  const Graph graph = some_classifier(rng, 6, 56, 2, 4);
  LogitTable logits;
  for (const double z : {3.0, 2.9, -90.0, -90.0}) logits.entries.push_back(point(z));
  const std::vector<Index> labels{0};
  const std::vector<double> radii{1e-3};
  const MarginNeeds needs(logits, labels, radii, 4);
  const double all = constant_of_all_logits(graph);
  const int before = threads();
  for (const int count : {1, 2}) {
    set_threads(count);
    const PairConstants found =
        pair_constants(graph, Norm(2), 1e6, {.clock = RunClock::by_wall(HUGE_VAL)}, &needs);
    for (Index j = 2; j < 4; ++j) {
      const double own = bound_of_margin(graph, 0, j, Norm(2), {"lipsdp"}).value;
      EXPECT_EQ(found.at(0, j).method, "lipsdp");
      EXPECT_GT(found.at(0, j).value, 1.001 * own);
      EXPECT_LT(found.at(0, j).value, 1.15 * own);
      EXPECT_LT(found.at(0, j).value, 0.95 * std::sqrt(2) * all);
    }
    const double own = bound_of_margin(graph, 0, 1, Norm(2), {"lipsdp"}).value;
    EXPECT_LT(found.at(0, 1).value, 1.002 * own);
  }
  set_threads(before);
}

TEST(PairConstants, AreNeverAboveThoseOfAllLogits) {
  Rng rng(12);
  for (int trial = 0; trial < 4; ++trial) {
    const Graph graph = some_classifier(rng, 6, 56, 2, 3 + trial);
    const PairConstants found = pair_constants(graph, Norm(2), 2, by_work(), nullptr);
    const double all = constant_of_all_logits(graph);
    for (const Bound& bound : found.upper) EXPECT_LE(bound.value, 1.002 * std::sqrt(2) * all);
  }
}

// The largest gradient of a margin over all patterns of active units, those that no input has
// included: multipliers say nothing about which there are.
double largest_gradient(const UnitNetwork& net, Index i, Index j) {
  Index units = 0;
  for (const UnitNode& node : net.nodes) units += std::ssize(node.slopes);
  double largest = 0;
  for (unsigned pattern = 0; pattern < (1U << static_cast<unsigned>(units)); ++pattern) {
    unsigned bits = pattern;
    std::vector<double> row(static_cast<std::size_t>(net.nodes.back().size), 0);
    row[static_cast<std::size_t>(i)] = 1;
    row[static_cast<std::size_t>(j)] = -1;
    for (std::size_t k = net.nodes.size() - 1; k > 0; --k) {
      const RowMatrix& map = net.nodes[k].edges[0].map;
      std::vector<double> next(static_cast<std::size_t>(map.cols), 0);
      for (Index r = 0; r < map.rows; ++r) {
        bool active = true;
        if (!net.nodes[k].slopes.empty()) {
          active = (bits & 1U) != 0;
          bits >>= 1U;
        }
        map.for_row(r, [&](Index c, std::size_t place) {
          if (active)
            next[static_cast<std::size_t>(c)] +=
                row[static_cast<std::size_t>(r)] * map.weights[place];
        });
      }
      row = std::move(next);
    }
    largest = std::max(largest, vector_norm(row, Norm(2)));
  }
  return largest;
}

TEST(SharedMargins, AreAboveTheGradientsOfAllPatternsAndNearTheirOwnBounds) {
  Rng rng(13);
  const auto clock = RunClock::by_wall(HUGE_VAL);
  const OwnBudget budget(*clock, HUGE_VAL, 0);
  for (int trial = 0; trial < 6; ++trial) {
    const Graph graph = some_classifier(rng, 3, 5, 2, 4);
    Problem problem({.graph = &graph});
    const auto margins = MarginSdp::read(problem);
    ASSERT_TRUE(margins);
    const auto shared = shared_margins(*margins, std::vector<double>(6, 1.0), budget);
    ASSERT_TRUE(shared);
    EXPECT_EQ(shared->network().nodes.size(), 3U);  // the last functions alone
    for (Index i = 0; i < 4; ++i) {
      for (Index j = i + 1; j < 4; ++j) {
        const double found = shared->margin(i, j, true, budget);
        const double own = margins->margin(i, j, true, budget);
        EXPECT_GE(found, largest_gradient(margins->network(), i, j));
        EXPECT_GE(found, 0.999 * own);
        EXPECT_LE(found, 1.25 * own);
      }
    }
  }
}

// Too many units for another proof per pair: the ellipsoid is that of the logits.
TEST(SharedMargins, BehindAWideLayerAreOfTheLogits) {
  Rng rng(14);
  GraphMaker m;
  ValueId x = m.input({1, 3});
  Index n = 3;
  for (const Index width : {5, 700}) {
    x = m.add("Relu", {m.add("MatMul", {x, m.weights(random_tensor(rng, {n, width}, -1, 1))})});
    n = width;
  }
  const Graph graph =
      m.finish(m.add("MatMul", {x, m.weights(random_tensor(rng, {n, 3}, -0.1, 0.1))}));
  const auto clock = RunClock::by_wall(HUGE_VAL);
  const OwnBudget budget(*clock, HUGE_VAL, 0);
  Problem problem({.graph = &graph});
  const auto margins = MarginSdp::read(problem);
  ASSERT_TRUE(margins);
  const auto shared = shared_margins(*margins, std::vector<double>{1, 2, 1}, budget);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->network().nodes.size(), 2U);
  for (const auto& [i, j] : {std::pair<Index, Index>{0, 1}, {0, 2}, {1, 2}}) {
    const double found = shared->margin(i, j, false, budget);
    const double own = margins->margin(i, j, false, budget);
    EXPECT_GE(found, 0.99 * own);
    EXPECT_LE(found, 1.5 * own);
  }
}

TEST(SharedMargins, AreNoneWithoutTimeOrWithoutTwoLayersOfUnits) {
  Rng rng(15);
  const std::vector<double> weights(3, 1.0);
  const auto clock = RunClock::by_wall(HUGE_VAL);
  const OwnBudget budget(*clock, HUGE_VAL, 0);
  const OwnBudget none(*clock, 0, 0);
  const Graph two = some_classifier(rng, 3, 5, 2, 3), one = some_classifier(rng, 3, 5, 1, 3);
  Problem of_two({.graph = &two}), of_one({.graph = &one});
  EXPECT_FALSE(shared_margins(*MarginSdp::read(of_two), weights, none));
  EXPECT_FALSE(shared_margins(*MarginSdp::read(of_one), weights, budget));
  EXPECT_FALSE(shared_margins(*MarginSdp::read(of_two), std::vector<double>(3, 0.0), budget));
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

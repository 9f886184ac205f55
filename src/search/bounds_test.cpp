// SPDX-License-Identifier: Apache-2.0
// The parts a search over pieces is made of.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rounding.h"
#include "estimate/chain_for_test.h"
#include "lipscope/evaluate.h"
#include "pieces/case_bound.h"
#include "pieces/pieces_for_test.h"
#include "search/bounded_search.h"
#include "search/cone_search.h"
#include "search/nearest_point.h"

namespace lipscope {
namespace {

using testing_support::jacobian;
using testing_support::layered;
using testing_support::norm_of;
using testing_support::pick_of;
using testing_support::random_pieces;

// Inner points of the intervals, mostly their ends.
Slopes some_slopes(const Slopes& intervals, Rng& rng) {
  Slopes chosen = intervals;
  std::uniform_real_distribution<double> uniform;
  for (auto& layer : chosen) {
    for (Interval& s : layer) {
      const Index kind = pick_of(rng, 3);
      const double at = kind == 0 ? 0 : kind == 1 ? 1 : uniform(rng);
      s = point(std::clamp(s.lo + at * (s.hi - s.lo), s.lo, s.hi));
    }
  }
  return chosen;
}

// Some units decided, others with both slopes.
Slopes some_intervals(const LayeredNet& net, Rng& rng) {
  Spans spans = open_spans(net);
  for (auto& layer : spans) {
    for (PieceSpan& span : layer) {
      const Index side = pick_of(rng, 4) - 1;  // below, open, above, open
      if (side == -1) span.last = 0;
      if (side == 1) span.first = span.last;
    }
  }
  return slopes_of(net, spans);
}

TEST(LayeredNet, HasTheJacobiansOfTheGraph) {
  Rng rng(3);
  int kinked = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const Graph graph = trial >= 200 ? random_pieces(rng, 3, {4, 3}, 2, testing_support::kAllKinks)
                        : trial % 2 == 0 ? testing_support::random_residual(rng)
                                         : testing_support::random_chain(rng);
    const auto net = testing_support::layered_net_of(graph);
    if (!net) continue;  // an affine network
    const Domain box{
        .box =
            Box{Tensor::vector(std::vector<double>(static_cast<std::size_t>(net->inputs()), -1.0)),
                Tensor::vector(std::vector<double>(static_cast<std::size_t>(net->inputs()), 1.0))}};
    const BoundedSearch region(*net, box);
    const Tensor x = random_tensor(rng, graph.value(graph.inputs()[0]).type.shape, -1, 1);
    const Tensor d = random_tensor(rng, graph.value(graph.inputs()[0]).type.shape, -1, 1);
    const std::vector<double> at(x.doubles().begin(), x.doubles().end());
    const std::vector<double> j = jacobian(*net, region.slopes_at(at));
    const Tensor expected = Trace(graph, std::vector<Tensor>{x}).jvp(std::vector<Tensor>{d})[0];
    for (Index i = 0; i < net->outputs(); ++i) {
      double sum = 0;
      for (Index c = 0; c < net->inputs(); ++c)
        sum += j[static_cast<std::size_t>(i * net->inputs() + c)] * d.at(c);
      EXPECT_NEAR(sum, expected.at(i), 1e-6 * (1 + std::fabs(expected.at(i))));
    }
    kinked += net->piecewise_linear() ? 1 : 0;
  }
  EXPECT_GT(kinked, 220);
}

// Maxima of windows and of pairs are sums of ReLUs.
TEST(LayeredNet, HasTheJacobiansOfMaxima) {
  Rng rng(4);
  for (int trial = 0; trial < 50; ++trial) {
    testing_support::GraphMaker m;
    const auto random = [&](Shape shape) {
      return m.weights(random_tensor(rng, std::move(shape)));
    };
    const ValueId x = m.input({1, 2, 6});
    ValueId y =
        m.add("Conv", {x, random({3, 2, 3}), random({3})}, {{"pads", std::vector<Index>{1, 1}}});
    y = m.add("MaxPool", {m.add("Relu", {y})},
              {{"kernel_shape", std::vector<Index>{3}}, {"strides", std::vector<Index>{2}}});
    y = m.add("Flatten", {y});
    const Index n = m.shape(y).back();
    const ValueId a = m.add("Gemm", {y, random({n, 4}), random({4})});
    const ValueId b = m.add("Gemm", {y, random({n, 4}), random({4})});
    const Graph graph =
        m.finish(m.add("Sub", {m.add("Max", {a, b}), m.add("Min", {b, random({1, 4})})}));
    const LayeredNet net = layered(graph);
    EXPECT_TRUE(net.piecewise_linear());
    const ConeSearch region(net);
    const Tensor at = random_tensor(rng, {1, 2, 6}, -2, 2),
                 d = random_tensor(rng, {1, 2, 6}, -1, 1);
    const std::vector<double> j =
        jacobian(net, region.slopes_at({at.doubles().begin(), at.doubles().end()}));
    const Tensor expected = Trace(graph, std::vector<Tensor>{at}).jvp(std::vector<Tensor>{d})[0];
    for (Index i = 0; i < 4; ++i) {
      double sum = 0;
      for (Index c = 0; c < 12; ++c) sum += j[static_cast<std::size_t>(i * 12 + c)] * d.at(c);
      EXPECT_NEAR(sum, expected.at(i), 1e-9) << trial;
    }
  }
}

TEST(EuclideanBound, IsAboveEveryJacobianAndExactForSingleSlopes) {
  Rng rng(5);
  double worst = 1;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<Index> widths;
    for (Index k = 1 + pick_of(rng, 3); k > 0; --k) widths.push_back(1 + pick_of(rng, 7));
    const LayeredNet net =
        layered(random_pieces(rng, 1 + pick_of(rng, 8), widths, 1 + pick_of(rng, 4)));
    const bool whole = pick_of(rng, 2) == 0;
    const NormDecomposition parts{.whole = whole, .count = whole ? 1 : net.outputs()};
    const auto bounder = make_bounder(net, parts);
    const auto proof = make_case_bound(net, parts);
    const Slopes intervals = some_intervals(net, rng);
    const Slopes single = some_slopes(intervals, rng);
    std::vector<double> above, exact;
    for (Index part = 0; part < parts.count; ++part) {
      std::vector<float> state, other;
      above.push_back(bounder->upper_bound(intervals, part, 0, state));
      EXPECT_EQ(proof->upper_bound(intervals, part, bounder->multipliers(), other), above.back());
      std::vector<float> fresh;
      exact.push_back(bounder->upper_bound(single, part, 0, fresh));
    }
    for (int j = 0; j < 20; ++j) {
      const Slopes slopes = some_slopes(intervals, rng);
      const double norm = norm_of(net, slopes, parse_norms(whole ? "2" : "2:inf")).lower;
      EXPECT_LE(norm, *std::ranges::max_element(above) * (1 + 1e-12));
    }
    const double norm = norm_of(net, single, parse_norms(whole ? "2" : "2:inf")).lower;
    const double found = *std::ranges::max_element(exact);
    EXPECT_GE(found, norm * (1 - 1e-12));
    if (norm > 1e-3) worst = std::max(worst, found / norm);
  }
  EXPECT_LT(worst, 1 + 1e-9);
}

TEST(EuclideanBound, RefusesMultipliersThatProveNothing) {
  Rng rng(6);
  const LayeredNet net = layered(random_pieces(rng, 3, {4}, 1, {"Relu"}));
  EuclideanBound bound(net, Index{0});
  const Slopes open = slopes_of(net, open_spans(net));
  for (const double s : {-1.0, 1e-300, HUGE_VAL, std::nan("")}) {
    EXPECT_EQ(bound.upper_bound(open, {std::vector<double>(4, s)}), kInf) << s;
  }
  EXPECT_LT(bound.upper_bound(open, {std::vector<double>(4, 0.0)}), kInf);
}

TEST(RowBound, IsAboveEveryGradientAndExactForSingleSlopes) {
  Rng rng(7);
  double worst = 1;
  for (int trial = 0; trial < 600; ++trial) {
    std::vector<Index> widths;
    for (Index k = 1 + pick_of(rng, 3); k > 0; --k) widths.push_back(1 + pick_of(rng, 6));
    const LayeredNet net =
        layered(random_pieces(rng, 1 + pick_of(rng, 6), widths, 1 + pick_of(rng, 3)));
    const bool one = pick_of(rng, 2) == 0;
    const auto norms = parse_norms(one ? "inf" : "1:inf");
    RowBound bound(net, one ? GradientNorm::kOne : GradientNorm::kMax);
    const Slopes intervals = some_intervals(net, rng), single = some_slopes(intervals, rng);
    double above = 0, exact = 0, inherited = 0;
    for (Index row = 0; row < net.outputs(); ++row) {
      std::vector<float> signs, fresh;
      above = std::max(above, bound.upper_bound(intervals, row, signs));
      exact = std::max(exact, bound.upper_bound(single, row, fresh));
      inherited = std::max(inherited, bound.upper_bound(single, row, signs));
    }
    for (int j = 0; j < 20; ++j)
      EXPECT_LE(norm_of(net, some_slopes(intervals, rng), norms).lower, above * (1 + 1e-13));
    const double norm = norm_of(net, single, norms).lower;
    EXPECT_GE(exact, norm * (1 - 1e-13));
    EXPECT_GE(inherited, norm * (1 - 1e-13));
    if (norm > 1e-3) worst = std::max({worst, exact / norm, inherited / norm});
  }
  EXPECT_LT(worst, 1 + 1e-10);
}

TEST(NearestPoint, FindsThePointOrWeightsAroundTheOrigin) {
  Rng rng(8);
  int around = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t n = 1 + rng() % 5, count = 1 + rng() % 10;
    std::vector<std::vector<double>> points;
    for (std::size_t i = 0; i < count; ++i) {
      const Tensor t = random_tensor(rng, {static_cast<Index>(n)}, -1, 1.5);
      points.emplace_back(t.doubles().begin(), t.doubles().end());
    }
    const NearestPoint found = nearest_point(points);
    std::vector<double> sum(n, 0);
    double total = 0, square = 0;
    for (std::size_t i = 0; i < found.points.size(); ++i) {
      EXPECT_GT(found.weights[i], 0);
      total += found.weights[i];
      for (std::size_t c = 0; c < n; ++c) sum[c] += found.weights[i] * points[found.points[i]][c];
    }
    EXPECT_NEAR(total, 1, 1e-9);
    for (std::size_t c = 0; c < n; ++c) {
      EXPECT_NEAR(sum[c], found.x[c], 1e-9);
      square += found.x[c] * found.x[c];
    }
    if (square < 1e-18) {
      ++around;
      continue;
    }
    for (const auto& p : points) {
      double dot = 0;
      for (std::size_t c = 0; c < n; ++c) dot += p[c] * found.x[c];
      EXPECT_GT(dot, square * (1 - 1e-6));
    }
  }
  EXPECT_GT(around, 50);
}

TEST(WidestPoint, LiesInsideOrItsWeightsSayWhyNot) {
  Rng rng(9);
  int empty = 0;
  for (int trial = 0; trial < 500; ++trial) {
    const std::size_t n = 1 + rng() % 5, count = 1 + rng() % 9;
    const Tensor w = random_tensor(rng, {static_cast<Index>(count * n)}, -1, 1);
    const Tensor c = random_tensor(rng, {static_cast<Index>(count)}, -1, 0.7);
    const std::vector<double> low(n, -1.0), high(n, 1.0), start(n, 0.0);
    const WidestPoint found = widest_point({w.doubles(), c.doubles()}, low, high, start, true);
    double least = HUGE_VAL, bound = 0;
    std::vector<double> sum(n, 0);
    for (std::size_t i = 0; i < count; ++i) {
      double value = c.at(static_cast<Index>(i)), square = 0;
      for (std::size_t j = 0; j < n; ++j) {
        const double e = w.at(static_cast<Index>(i * n + j));
        value += e * found.x[j];
        square += e * e;
        sum[j] += found.weights[i] * e;
      }
      bound += found.weights[i] * c.at(static_cast<Index>(i));
      least = std::min(least, value / std::sqrt(square));
      EXPECT_GE(found.weights[i], 0);
    }
    for (std::size_t j = 0; j < n; ++j) {
      EXPECT_LE(std::fabs(found.x[j]), 1);
      bound += std::fabs(sum[j]);
    }
    EXPECT_NEAR(least, found.slack, 1e-8);
    EXPECT_NEAR(bound, found.slack, 1e-8);  // no point can be further inside
    empty += found.slack < 0 ? 1 : 0;
  }
  EXPECT_GT(empty, 50);
  EXPECT_LT(empty, 450);
}

// Pieces that occur at a point are never said not to occur.
TEST(ConeSearch, NeverDeniesPiecesThatOccur) {
  Rng rng(10);
  std::normal_distribution<double> normal;
  int denied = 0, found = 0;
  for (int trial = 0; trial < 600; ++trial) {
    std::vector<Index> widths;
    for (Index k = 1 + pick_of(rng, 3); k > 0; --k) widths.push_back(1 + pick_of(rng, 6));
    const Index n = 1 + pick_of(rng, 4);
    const LayeredNet net =
        layered(trial % 2 == 0 ? random_pieces(rng, n, widths, 1)
                               : random_pieces(rng, n, widths, 1, testing_support::kAllKinks));
    ConeSearch region(net);
    const auto path_of = [&](const Spans& spans, std::size_t sides) {
      Path path;
      for (std::size_t k = 0; k < spans.size(); ++k) {
        for (std::size_t i = 0; i < spans[k].size() && path.size() < sides; ++i) {
          const UnitForm form = net.layers[k].form(i);
          const auto [first, last] = spans[k][i];
          if (first > 0) path.push_back({{k, i}, midpoint(form.kink(first - 1)), true});
          if (last + 1 < form.pieces()) path.push_back({{k, i}, midpoint(form.kink(last)), false});
        }
      }
      return path;
    };
    for (int point = 0; point < 10; ++point) {
      std::vector<double> x;
      for (Index i = 0; i < net.inputs(); ++i)
        x.push_back(std::exp(2 * normal(rng)) * (rng() % 2 == 0 ? 1 : -1));
      const Path path = path_of(spans_at(net, x), 1 + rng() % 12);
      EXPECT_FALSE(region.examine(path, {}).empty);
    }
    // Random pieces: what is denied has to be confirmed, a point has to have the pieces.
    Spans spans = open_spans(net);
    for (std::size_t k = 0; k < spans.size(); ++k) {
      for (std::size_t i = 0; i < spans[k].size(); ++i) {
        if (net.layers[k].below[i] == net.layers[k].above[i]) continue;
        spans[k][i].first = spans[k][i].last = rng() % (spans[k][i].last + 1);
      }
    }
    const Path path = path_of(spans, 100);
    const SearchRegion::Finding view = region.examine(path, {});
    if (view.empty) {
      ++denied;
      EXPECT_TRUE(region.confirm(path, view.proof).empty);
      CaseTree::InfeasibilityProof other = view.proof;
      for (double& w : other.weights) w = -w;
      if (trial % 2 == 0) {
        EXPECT_FALSE(region.confirm(path, other).empty);
      }
    } else if (!view.point.empty()) {
      ++found;
      EXPECT_TRUE(agrees(spans, spans_at(net, view.point)));
    }
  }
  EXPECT_GT(denied, 100);
  EXPECT_GT(found, 100);
}

// Values at points of the domain lie in the ranges, for ReLUs and for curved functions; parts that
// hold a point are never said to be empty.
TEST(BoundedSearch, HoldsItsPoints) {
  Rng rng(11);
  std::uniform_real_distribution<double> uniform(-1, 1);
  int splits = 0, empty = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const Graph graph = trial % 3 == 0 ? testing_support::random_chain(rng)
                                       : random_pieces(rng, 1 + pick_of(rng, 4),
                                                       {1 + pick_of(rng, 6), 1 + pick_of(rng, 6)},
                                                       1, testing_support::kAllKinks);
    const auto net = testing_support::layered_net_of(graph);
    if (!net) continue;
    const auto n = static_cast<std::size_t>(net->inputs());
    std::vector<double> center(n);
    for (double& c : center) c = uniform(rng);
    const double radius = 0.3;
    const Norm ball_norm = parse_norms(trial % 2 == 0 ? "2" : trial % 4 == 1 ? "1" : "inf").in;
    Domain domain{.box = {}, .ball = Ball{Tensor::vector(center), radius, ball_norm}};
    BoundedSearch region(*net, domain);
    ASSERT_TRUE(region.usable());
    std::vector<double> x(n);
    do {
      for (std::size_t i = 0; i < n; ++i) x[i] = center[i] + radius * uniform(rng);
    } while (!in_domain(domain, x));
    const Slopes here = region.slopes_at(x);
    const auto values = testing_support::values_at(*net, x);
    Path path;
    for (int depth = 0; depth < 8; ++depth) {
      const SearchRegion::Finding view = region.examine(path, {});
      ASSERT_FALSE(view.empty);
      // What was looked at before leaves no trace.
      EXPECT_EQ(BoundedSearch(*net, domain).examine(path, {}).slopes, view.slopes);
      for (std::size_t k = 0; k < here.size(); ++k) {
        for (std::size_t i = 0; i < here[k].size(); ++i) {
          EXPECT_GE(here[k][i].lo, view.slopes[k][i].lo - 1e-6);
          EXPECT_LE(here[k][i].lo, view.slopes[k][i].hi + 1e-6);
        }
      }
      std::optional<Side> split;
      for (std::size_t k = 0; k < here.size(); ++k) {
        for (std::size_t i = 0; i < here[k].size(); ++i) {
          const auto at = region.split_at({k, i});
          if (at && std::fabs(values[k][i] - *at) > 1e-9 && (!split || rng() % 3 == 0))
            split = Side{{k, i}, *at, values[k][i] > *at};
        }
      }
      if (!split) break;
      path.push_back(*split);
      ++splits;
      Path other = path;
      other.back().above = !other.back().above;
      BoundedSearch again(*net, domain);
      const SearchRegion::Finding denied = again.examine(other, {});
      EXPECT_EQ(again.confirm(other, denied.proof).empty, denied.empty);
      empty += denied.empty ? 1 : 0;
      (void)region.examine(other, {});
    }
  }
  EXPECT_GT(splits, 300);
  EXPECT_GT(empty, 10);
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "bounds/linear_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lipscope/evaluate.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;

Domain box_around_zero(Index size, double half) {
  const auto n = static_cast<std::size_t>(size);
  Domain domain;
  domain.box = Box{Tensor::vector(std::vector<double>(n, -half)),
                   Tensor::vector(std::vector<double>(n, half))};
  return domain;
}

std::size_t size_of_value(const Graph& graph, ValueId id) {
  return static_cast<std::size_t>(element_count(graph.value(id).type.shape));
}

// Intervals that hold all values at a point.
ValueBoxes values_at(const Graph& graph, const std::vector<double>& x) {
  std::vector<Box> at;
  for (const Tensor& t : split_inputs(graph, x)) at.push_back({t, t});
  return {graph, at};
}

// x + relu(..), then weights times relu of that and x again.
Graph residual_relu(Rng& rng, Index in, Index width) {
  GraphMaker m;
  const auto random = [&](Shape shape) {
    return m.weights(random_tensor(rng, std::move(shape), -1, 1));
  };
  const ValueId x = m.input({1, in});
  const ValueId inner = m.add("Relu", {m.add("Gemm", {x, random({in, width}), random({width})})});
  const ValueId sum = m.add("Add", {x, m.add("MatMul", {inner, random({width, in})})});
  const ValueId outer = m.add("Relu", {m.add("Gemm", {sum, random({in, width}), random({width})})});
  return m.finish(m.add("Add", {m.add("MatMul", {outer, random({width, 1})}),
                                m.add("MatMul", {sum, random({in, 1})})}));
}

// The least value of a function that is linear between its kinks: they are near the points of a
// fine grid where the second difference is not zero.
double least_on_line(const Graph& graph, double half) {
  constexpr Index kCount = 20001;
  const auto at = [&](const std::vector<double>& x) {
    const Tensor y = evaluate(
        graph, std::vector{Tensor(ElementType::kFloat64, {std::ssize(x), 1}, x)}, std::ssize(x))[0];
    return std::vector<double>(y.doubles().begin(), y.doubles().end());
  };
  std::vector<double> x;
  for (Index k = 0; k < kCount; ++k)
    x.push_back(half * (2 * static_cast<double>(k) / (kCount - 1) - 1));
  const std::vector<double> y = at(x);
  std::vector<double> kinks{-half, half};
  for (std::size_t k = 1; k + 2 < x.size(); ++k) {
    // Where the lines through the two points on both sides meet.
    const double left = (y[k] - y[k - 1]) / (x[k] - x[k - 1]);
    const double right = (y[k + 2] - y[k + 1]) / (x[k + 2] - x[k + 1]);
    if (std::fabs(left - right) < 1e-6) continue;
    kinks.push_back(std::clamp(
        x[k] + (y[k + 1] - y[k] - right * (x[k + 1] - x[k])) / (left - right), x[k], x[k + 1]));
  }
  const std::vector<double> there = at(kinks);
  return std::min(*std::ranges::min_element(y), *std::ranges::min_element(there));
}

// Splits where it is proposed until nothing is left; the parts of the end.
std::vector<LinearPart> split_fully(LinearParts& parts, int steps) {
  std::vector<LinearPart> open{parts.whole(0)}, closed;
  while (!open.empty()) {
    LinearPart part = open.back();
    open.pop_back();
    parts.raise(std::span(&part, 1), std::vector<double>{kInf}, steps);
    if (!part.split || part.bound == kInf) {
      closed.push_back(part);
      continue;
    }
    for (const bool at_least : {false, true})
      open.push_back(parts.side(part, *part.split, at_least));
  }
  return closed;
}

TEST(LinearParts, AllSidesOfAResidualNetworkAreExact) {
  Rng rng(5);
  int better = 0;
  for (int net = 0; net < 8; ++net) {
    const Graph graph = residual_relu(rng, 1, 4);
    const double exact = least_on_line(graph, 1);
    const AffineNodes nodes(graph);
    LinearBounds bounds(graph, nodes, box_around_zero(1, 1), {});
    const ValueId out = graph.outputs()[0];
    const std::vector<double> row{1};
    const double whole = bounds.raised(out, row, std::vector<double>{kInf}, 100)[0];
    EXPECT_LE(whole, exact);
    LinearParts parts(bounds, out, row);
    double least = kInf;
    for (const LinearPart& part : split_fully(parts, 600)) least = std::min(least, part.bound);
    EXPECT_LE(least, exact) << net;
    EXPECT_NEAR(least, exact, 1e-6) << net;
    better += whole < exact - 1e-3 ? 1 : 0;
  }
  EXPECT_GE(better, 4);
}

// relu(x + y) + relu(x - y) / 2 - x - 2 y where x + y <= 0: there it is at least -y >= -1. Lines
// (t / 2 - 1) x - (t / 2 + 2) y of any t are -3 at x = y = 1, which the multiplier excludes.
TEST(LinearParts, MultipliersKnowWhatLinesDoNot) {
  GraphMaker m;
  const ValueId x = m.input({1, 2});
  const ValueId turned = m.add("MatMul", {x, m.weights({2, 2}, {1, 1, 1, -1})});
  const ValueId sum = m.add("MatMul", {x, m.weights({2, 1}, {1, 2})});
  const Graph graph = m.finish(
      m.add("Sub", {m.add("MatMul", {m.add("Relu", {turned}), m.weights({2, 1}, {1, 0.5})}), sum}));
  const AffineNodes nodes(graph);
  LinearBounds bounds(graph, nodes, box_around_zero(2, 1), {});
  const ValueId out = graph.outputs()[0];
  LinearParts parts(bounds, out, std::vector<double>{1});
  const LinearPart part = parts.side(parts.whole(0), {turned, 0, 0}, false);
  LinearPart plain = part, raised = part;
  parts.raise(std::span(&plain, 1), std::vector<double>{kInf}, 0);
  parts.raise(std::span(&raised, 1), std::vector<double>{kInf}, 100);
  EXPECT_NEAR(plain.bound, -3, 1e-9);
  EXPECT_LE(raised.bound, -1);
  EXPECT_NEAR(raised.bound, -1, 1e-3);
  EXPECT_LT(raised.cuts[0].multiplier, -0.1);
}

TEST(LinearParts, SidesWithoutAPointAreInfinite) {
  GraphMaker m;
  const ValueId x = m.input({1, 1});
  const Graph graph = m.finish(m.add("Relu", {x}));
  const AffineNodes nodes(graph);
  LinearBounds bounds(graph, nodes, box_around_zero(1, 1), {});
  LinearParts parts(bounds, graph.outputs()[0], std::vector<double>{1});
  LinearPart none = parts.side(parts.whole(0), {x, 0, 2}, true);
  parts.raise(std::span(&none, 1), std::vector<double>{kInf}, 3);
  EXPECT_EQ(none.bound, kInf);
  LinearPart right = parts.side(parts.whole(0), {x, 0, 0.25}, true);
  parts.raise(std::span(&right, 1), std::vector<double>{kInf}, 60);
  EXPECT_LE(right.bound, 0.25);
  EXPECT_NEAR(right.bound, 0.25, 1e-2);
}

// Gates, curves and kinks at several places, with sums around them.
Graph gated_network(Rng& rng) {
  const char* const curves[] = {"Relu",      "Tanh", "Sigmoid",   "Gelu",        "Abs",
                                "LeakyRelu", "Exp",  "HardSwish", "HardSigmoid", "Softplus"};
  const auto curve = [&] { return curves[rng() % std::size(curves)]; };
  GraphMaker m;
  const auto random = [&](Shape shape) {
    return m.weights(random_tensor(rng, std::move(shape), -0.8, 0.8));
  };
  const Index in = 2 + static_cast<Index>(rng() % 3);
  ValueId x = m.input({1, in});
  if (rng() % 3 == 0) x = m.add(curve(), {x});
  for (int block = 0; block < 2; ++block) {
    const ValueId a = m.add("Gemm", {x, random({in, 5}), random({5})});
    ValueId h = m.add(curve(), {a});
    if (rng() % 2 == 0) h = m.add("Mul", {h, m.add(curve(), {a})});
    x = m.add("Add", {x, m.add("MatMul", {h, random({5, in})})});
  }
  return m.finish(m.add("MatMul", {x, random({in, 2})}));
}

// Whether a point is in a part, for certain; values are known up to rounding.
bool surely_inside(const LinearPart& part, ValueBoxes& values) {
  return std::ranges::all_of(part.cuts, [&](const LinearPart::Cut& cut) {
    const Box& box = values.at(cut.value);
    return cut.range.lo <= box.lower.doubles()[cut.entry] &&
           box.upper.doubles()[cut.entry] <= cut.range.hi;
  });
}

TEST(LinearParts, HoldEverySampleOfRandomParts) {
  Rng rng(17);
  std::uniform_real_distribution<double> uniform(-1, 1);
  int checked = 0, cut = 0;
  for (int net = 0; net < 200; ++net) {
    const Graph graph = net % 4 == 0 ? residual_relu(rng, 3, 6) : gated_network(rng);
    const auto in = static_cast<std::size_t>(input_size(graph));
    const double radius = std::pow(10, 1.5 * uniform(rng) - 0.7);
    const double p = std::vector<double>{1, 2, kInf}[rng() % 3];
    std::vector<double> center(in);
    for (double& e : center) e = uniform(rng);
    Domain domain;
    domain.ball = Ball{Tensor::vector(center), radius, Norm(p)};
    const AffineNodes nodes(graph);
    LinearBounds bounds(graph, nodes, domain, {});
    const ValueId out = graph.outputs()[0];
    const std::size_t size = size_of_value(graph, out);
    const Tensor rows = random_tensor(rng, {3, static_cast<Index>(size)}, -1, 1);
    LinearParts parts(bounds, out, rows.doubles());
    // Some where it is proposed, some anywhere; all with multipliers of their own.
    std::vector<LinearPart> all;
    for (std::size_t row = 0; row < 3; ++row) all.push_back(parts.whole(row));
    parts.raise(all, std::vector<double>(3, kInf), static_cast<int>(rng() % 4));
    for (int round = 0; round < 4; ++round) {
      std::vector<LinearPart> next;
      for (const LinearPart& part : all) {
        if (!part.split || part.bound == kInf) continue;
        LinearPart::Place place = *part.split;
        if (rng() % 3 == 0) {
          const Box& box = bounds.values().at(place.value);
          const double t = 0.5 + 0.6 * uniform(rng);
          place.at =
              (1 - t) * box.lower.doubles()[place.entry] + t * box.upper.doubles()[place.entry];
        }
        for (const bool at_least : {false, true}) next.push_back(parts.side(part, place, at_least));
      }
      if (next.empty()) break;
      if (next.size() > 12) next.resize(12);
      for (LinearPart& part : next) {
        for (LinearPart::Cut& c : part.cuts) c.multiplier += rng() % 3 == 0 ? uniform(rng) : 0;
      }
      parts.raise(next, std::vector<double>(3, kInf), static_cast<int>(rng() % 4));
      all.insert(all.end(), next.begin(), next.end());
    }
    for (int s = 0; s < 40; ++s) {
      std::vector<double> x(in);
      for (double& e : x) e = uniform(rng);
      double length = 0;
      for (const double e : x)
        length = p == kInf ? std::max(length, std::fabs(e)) : length + std::pow(std::fabs(e), p);
      length = p == 2 ? std::sqrt(length) : length;
      const double way = radius * (1 - 1e-12) * (s % 2 == 0 ? 1 : std::fabs(uniform(rng)));
      for (std::size_t j = 0; j < in; ++j) x[j] = center[j] + way * x[j] / length;
      ValueBoxes values = values_at(graph, x);
      const Box y = values.at(out);
      for (const LinearPart& part : all) {
        if (!surely_inside(part, values)) continue;
        Interval sum = point(0);
        for (std::size_t e = 0; e < size; ++e)
          sum += rows.doubles()[part.row * size + e] *
                 Interval{y.lower.doubles()[e], y.upper.doubles()[e]};
        ASSERT_LE(part.bound, sum.hi) << net << " cuts " << part.cuts.size();
        ++checked;
        cut += part.cuts.empty() ? 0 : 1;
      }
    }
  }
  EXPECT_GT(checked, 20000);
  EXPECT_GT(cut, 10000);
}

// Where everything is nearly constant a large multiplier cancels to what is left of its rounding.
TEST(LinearParts, RoundingOfLargeMultipliersIsCharged) {
  Rng rng(23);
  std::uniform_real_distribution<double> uniform(-1, 1);
  int checked = 0;
  for (int net = 0; net < 300; ++net) {
    GraphMaker m;
    const ValueId x = m.input({1, 3});
    const auto random = [&](Shape shape) {
      return m.weights(random_tensor(rng, std::move(shape), -1, 1));
    };
    const ValueId inner = m.add("Add", {x, m.add("Mul", {x, random({3})})});
    const ValueId h = m.add("Add", {inner, m.add("Tanh", {inner})});
    const Graph graph = m.finish(h);
    std::vector<double> center(3), row(3);
    for (double& e : center) e = uniform(rng);
    for (double& e : row) e = uniform(rng);
    Domain domain;
    domain.ball = Ball{Tensor::vector(center), 1e-15, Norm::infinity()};
    const AffineNodes nodes(graph);
    LinearBounds bounds(graph, nodes, domain, {});
    LinearParts parts(bounds, graph.outputs()[0], row);
    const ValueId value = graph.nodes()[1].outputs[0];
    ASSERT_EQ(graph.nodes()[2].op->name(), "Tanh");
    const Box& box = bounds.values().at(value);
    LinearPart part = parts.whole(0);
    for (std::size_t e = 0; e < 3; ++e) {
      // All of it.
      part = parts.side(part, {value, e, box.lower.doubles()[e]}, true);
      part.cuts.back().multiplier = 1e9 * uniform(rng);
    }
    parts.raise(std::span(&part, 1), std::vector<double>{kInf}, 0);
    for (int s = 0; s < 10; ++s) {
      std::vector<double> at = center;
      for (double& e : at) e += 0.9e-15 * uniform(rng);
      ValueBoxes values = values_at(graph, at);
      const Box& y = values.at(graph.outputs()[0]);
      Interval sum = point(0);
      for (std::size_t e = 0; e < 3; ++e)
        sum += row[e] * Interval{y.lower.doubles()[e], y.upper.doubles()[e]};
      ASSERT_LE(part.bound, sum.hi) << net;
      ASSERT_GT(part.bound, sum.lo - 1e-3) << net;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 3000);
}

}  // namespace
}  // namespace lipscope

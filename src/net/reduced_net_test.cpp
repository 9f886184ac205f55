// SPDX-License-Identifier: Apache-2.0
// Networks reduced to the units that are open on a domain.
#include "net/reduced_net.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "estimate/chain_for_test.h"
#include "lipscope/evaluate.h"
#include "net/nets_for_test.h"
#include "net/unit_ranges.h"
#include "pieces/case_bound.h"
#include "pieces/pieces_for_test.h"
#include "search/bounded_search.h"
#include "search/search.h"

namespace lipscope {
namespace {

using testing_support::random_residual;

// Two convolutions with a shortcut, a maximum of windows, a dense layer.
Graph random_picture_net(Rng& rng) {
  testing_support::GraphMaker m;
  const auto random = [&](Shape shape) { return m.weights(random_tensor(rng, std::move(shape))); };
  const ValueId x = m.input({1, 2, 6});
  const Attributes same{{"pads", std::vector<Index>{1, 1}}};
  const char* kinds[] = {"Relu", "LeakyRelu", "Abs", "Tanh", "HardSigmoid"};
  const auto kind = [&] { return kinds[rng() % std::size(kinds)]; };
  const ValueId u = m.add(kind(), {m.add("Conv", {x, random({2, 2, 3}), random({2})}, same)});
  const ValueId v = m.add("Conv", {u, random({2, 2, 3}), random({2})}, same);
  ValueId y = m.add(kind(), {m.add("Add", {u, v})});
  if (rng() % 2 == 0) {
    y = m.add("MaxPool", {y},
              {{"kernel_shape", std::vector<Index>{2}}, {"strides", std::vector<Index>{2}}});
  }
  y = m.add("Flatten", {y});
  const Index n = m.shape(y).back();
  y = m.add("Relu", {m.add("Gemm", {y, random({n, 5}), random({5})})});
  return m.finish(m.add("Gemm", {y, random({5, 2}), random({2})}));
}

struct Case {
  Graph graph;
  Domain domain;
  UnitNetwork net;
  std::vector<std::vector<Interval>> ranges;
};

std::optional<Case> random_case(Rng& rng) {
  Case made{.graph = rng() % 3 == 0 ? random_residual(rng) : random_picture_net(rng),
            .domain = {},
            .net = {},
            .ranges = {}};
  const Shape shape = made.graph.value(made.graph.inputs()[0]).type.shape;
  const Tensor center = random_tensor(rng, {element_count(shape)}, -1, 1);
  std::uniform_real_distribution<double> exponent(-3, 0);
  const double radius = std::pow(10, exponent(rng));
  const double ps[] = {1, 2, kInf};
  made.domain.ball = Ball{center, radius, Norm(ps[rng() % 3])};
  auto net = testing_support::network_with_biases(made.graph);
  if (!net) return std::nullopt;
  made.net = *std::move(net);
  const DomainSupport support(made.domain, static_cast<std::size_t>(made.net.nodes[0].size));
  made.ranges = unit_ranges(made.net, support, {});
  return made;
}

std::vector<double> point_of(const Ball& ball, Rng& rng) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  std::vector<double> step(static_cast<std::size_t>(ball.center.size()));
  for (double& e : step) e = ball.norm.p() == kInf ? (rng() % 2 == 0 ? -1 : 1) : normal(rng);
  const double size = pnorm_up(step, ball.norm.p());
  const double way = 0.999999 * (rng() % 2 == 0 ? 1 : uniform(rng)) * ball.radius / size;
  for (std::size_t i = 0; i < step.size(); ++i) step[i] = ball.center.doubles()[i] + way * step[i];
  return step;
}

// Values before the units of all nodes, and of the last one.
std::vector<std::vector<double>> values_of(const UnitNetwork& net, const std::vector<double>& x) {
  std::vector<std::vector<double>> before(net.nodes.size()), behind(net.nodes.size());
  behind[0] = x;
  for (std::size_t k = 1; k < net.nodes.size(); ++k) {
    const UnitNode& node = net.nodes[k];
    for (std::size_t i = 0; i < static_cast<std::size_t>(node.size); ++i) {
      double z = 0.5 * (node.bias[i].lo + node.bias[i].hi);
      for (const UnitNode::Edge& edge : node.edges) {
        edge.map.for_row(static_cast<Index>(i), [&](Index j, std::size_t at) {
          z += edge.map.weights[at] * behind[edge.from][static_cast<std::size_t>(j)];
        });
      }
      before[k].push_back(z);
      if (k + 1 == net.nodes.size()) continue;
      const UnitForm form = NodeForms(node)[i];
      if (!form.curved()) {
        behind[k].push_back(plain_value(form, z));
        continue;
      }
      const Tensor at = Tensor::vector(std::vector<double>{z});
      const Box box{at, at};
      behind[k].push_back((*form.phi->range(std::span(&box, 1)))[0].lower.at(0));
    }
  }
  return before;
}

TEST(UnitRanges, HoldTheValuesOfAllPoints) {
  Rng rng(1);
  std::size_t decided = 0, open = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const auto made = random_case(rng);
    if (!made) continue;
    for (int sample = 0; sample < 20; ++sample) {
      const auto values = values_of(made->net, point_of(*made->domain.ball, rng));
      for (std::size_t k = 1; k + 1 < made->net.nodes.size(); ++k) {
        for (std::size_t i = 0; i < values[k].size(); ++i) {
          const Interval range = made->ranges[k][i];
          EXPECT_LE(range.lo, values[k][i] + 1e-9);
          EXPECT_GE(range.hi, values[k][i] - 1e-9);
        }
      }
    }
    for (std::size_t k = 1; k + 1 < made->net.nodes.size(); ++k) {
      const NodeForms forms(made->net.nodes[k]);
      for (std::size_t i = 0; i < made->ranges[k].size(); ++i)
        ++(forms[i].is_unstable(made->ranges[k][i]) ? open : decided);
    }
  }
  EXPECT_GT(decided, 1000U);
  EXPECT_GT(open, 1000U);
}

// At least as good as the bounds of the dense chain.
TEST(UnitRanges, AreThoseOfTheDenseChain) {
  Rng rng(2);
  for (int trial = 0; trial < 50; ++trial) {
    const Graph graph = testing_support::random_pieces(rng, 4, {6, 5, 4}, 2);
    const Domain domain{
        .ball = Ball{random_tensor(rng, {4}, -1, 1), 0.2, Norm(trial % 2 == 0 ? 2 : kInf)}};
    const UnitNetwork net = *testing_support::network_with_biases(graph);
    const DomainSupport support(domain, 4);
    const auto ranges = unit_ranges(net, support, {});
    const LayeredNet chain = testing_support::layered(graph);
    const PreactivationBounds dense(chain, support);
    for (std::size_t k = 0; k < chain.hidden(); ++k) {
      for (std::size_t i = 0; i < dense.ranges()[k].size(); ++i) {
        if (!chain.layers[k].form(i).is_unstable(ranges[k + 1][i])) continue;
        EXPECT_LE(ranges[k + 1][i].hi, dense.ranges()[k][i].hi + 1e-9);
        EXPECT_GE(ranges[k + 1][i].lo, dense.ranges()[k][i].lo - 1e-9);
      }
    }
  }
}

TEST(ReducedNet, IsTheSameFunctionOnTheDomain) {
  Rng rng(3);
  std::size_t smaller = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const auto made = random_case(rng);
    if (!made) continue;
    const UnitNumbers open = unstable_units(made->net, made->ranges);
    const auto net = reduced_net(made->net, made->ranges, open, 1'000'000);
    ASSERT_TRUE(net) << net.reason();
    EXPECT_EQ(net->inputs(), made->net.nodes[0].size);
    EXPECT_EQ(net->outputs(), made->net.nodes.back().size);
    smaller += open.size() < static_cast<std::size_t>(made->net.size()) / 4 ? 1 : 0;
    for (int sample = 0; sample < 10; ++sample) {
      const std::vector<double> x = point_of(*made->domain.ball, rng);
      const std::vector<double> expected = values_of(made->net, x).back();
      // As another hidden layer, so that the helper shows its values.
      LayeredNet with_end = *net;
      DenseLayer& last = with_end.layers.back();
      last.below = last.above = std::vector<double>(expected.size(), 1);
      last.slopes.assign(expected.size(), point(1));
      last.phi.assign(expected.size(), nullptr);
      with_end.layers.emplace_back();
      const std::vector<double> found = testing_support::values_at(with_end, x).back();
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(found[i], expected[i], 1e-9 * (1 + std::fabs(expected[i])));
    }
  }
  EXPECT_GT(smaller, 50U);
}

// Where no unit is open the network is one affine map: its true weights are within the radii.
TEST(ReducedNet, KnowsHowFarItsWeightsAreAway) {
  Rng rng(4);
  int tried = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const Graph graph = testing_support::random_pieces(rng, 3, {5, 4, 3}, 2, {"Relu", "LeakyRelu"});
    const Tensor center = random_tensor(rng, {3}, -1, 1);
    const Domain domain{.ball = Ball{center, 1e-4, Norm(2)}};
    const UnitNetwork net = *testing_support::network_with_biases(graph);
    const auto ranges = unit_ranges(net, DomainSupport(domain, 3), {});
    if (!unstable_units(net, ranges).empty()) continue;
    ++tried;
    const auto reduced = reduced_net(net, ranges, {}, 1'000);
    ASSERT_TRUE(reduced) << reduced.reason();
    ASSERT_EQ(reduced->hidden(), 0U);
    std::vector<long double> product;  // by rows
    for (std::size_t k = 1; k < net.nodes.size(); ++k) {
      const RowMatrix& map = net.nodes[k].edges[0].map;
      std::vector<long double> next(static_cast<std::size_t>(map.rows * 3));
      const UnitForm form = k + 1 < net.nodes.size() ? NodeForms(net.nodes[k])[0] : UnitForm{};
      for (Index i = 0; i < map.rows; ++i) {
        const auto row = static_cast<std::size_t>(i);
        const bool last = k + 1 == net.nodes.size();
        const double slope = last ? 1 : ranges[k][row].lo >= 0 ? form.above : form.below;
        map.for_row(i, [&](Index j, std::size_t at) {
          for (std::size_t c = 0; c < 3; ++c) {
            const long double before = k == 1 ? (static_cast<std::size_t>(j) == c ? 1.0L : 0.0L)
                                              : product[static_cast<std::size_t>(j) * 3 + c];
            next[row * 3 + c] += slope * static_cast<long double>(map.weights[at]) * before;
          }
        });
      }
      product = std::move(next);
    }
    const DenseLayer& only = reduced->layers[0];
    for (std::size_t e = 0; e < product.size(); ++e) {
      const double radius = only.radius.empty() ? 0 : only.radius[e];
      EXPECT_LE(std::fabs(static_cast<double>(product[e] - only.weights[e])),
                radius + 1e-19 * std::fabs(only.weights[e]));
      EXPECT_LT(radius, 1e-13 * (1 + std::fabs(only.weights[e])));
    }
  }
  EXPECT_GT(tried, 20);
}

// A search over the pieces of the small network finds the largest norm over those of the whole one.
TEST(ReducedNet, HasTheSameExactConstants) {
  Rng rng(6);
  int smaller = 0, closed = 0;
  for (int trial = 0; trial < 200; ++trial) {
    static const char* kNorms[] = {"2", "inf", "1", "2:inf", "1:2", "inf:1"};
    const NormPair norms = parse_norms(kNorms[trial % 6]);
    const Graph graph = trial % 4 < 2 ? testing_support::random_pieces(rng, 2, {5, 4, 3}, 2)
                                      : testing_support::random_pieces(rng, 2, {4, 3}, 2,
                                                                       testing_support::kAllKinks);
    const Tensor center = random_tensor(rng, {2}, -1, 1);
    const double radius = trial % 2 == 0 ? 0.1 : 0.5;
    std::vector<double> low, high;
    for (const double c : center.doubles()) {
      low.push_back(c - radius);
      high.push_back(c + radius);
    }
    const Domain domain{.box = Box{Tensor::vector(low), Tensor::vector(high)}};
    const UnitNetwork net = *testing_support::network_with_biases(graph);
    const auto ranges = unit_ranges(net, DomainSupport(domain, 2), {});
    const UnitNumbers open = unstable_units(net, ranges);
    const auto small = reduced_net(net, ranges, open, 1'000);
    ASSERT_TRUE(small) << small.reason();
    smaller += open.size() < 12 ? 1 : 0;
    const NormDecomposition parts = *decomposition_of(norms, 2, 2);
    PieceSearch search(
        *small, parts, BoundedSearch(*small, domain), [](const auto&) { return 0.0; }, 0);
    EXPECT_FALSE(search.run(1, [] { return false; }));
    BoundedSearch again(*small, domain);
    EXPECT_LE(confirmed_bound(*small, parts, again, search.tree()), search.upper() * (1 + 1e-9));
    const LayeredNet whole = testing_support::layered(graph);
    testing_support::Enumeration all(whole, norms, low, high);
    const double exact = all.largest();
    EXPECT_GE(search.upper(), exact * (1 - 1e-12)) << trial;
    if (all.thinnest < 1e-6) continue;
    EXPECT_LE(search.upper(), exact * (1 + 1e-6) + 1e-6) << trial;
    ++closed;
  }
  EXPECT_GT(smaller, 150);
  EXPECT_GT(closed, 100);
}

TEST(ReducedNet, NeedsAllUnstableUnits) {
  Rng rng(5);
  int tried = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const auto made = random_case(rng);
    if (!made) continue;
    UnitNumbers open = unstable_units(made->net, made->ranges);
    UnitNumbers unknown = open;
    unknown.push_back(1'000'000);
    EXPECT_FALSE(reduced_net(made->net, made->ranges, unknown, 1'000'000));
    if (open.empty()) continue;
    ++tried;
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(rng() % open.size()));
    const auto none = reduced_net(made->net, made->ranges, open, 1'000'000);
    EXPECT_FALSE(none);
    EXPECT_EQ(none.reason(), "a list of unstable units that leaves one out");
  }
  EXPECT_GT(tried, 50);
}

}  // namespace
}  // namespace lipscope

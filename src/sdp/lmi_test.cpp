// SPDX-License-Identifier: Apache-2.0
#include "sdp/lmi.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/parallel.h"
#include "bounds/boxes.h"
#include "estimate/lipsdp_dual.h"
#include "estimate/lipsdp_solver.h"
#include "estimate/quotient.h"
#include "linalg/tensor/cholesky.h"
#include "lipscope/select.h"
#include "net/nets_for_test.h"
#include "sdp/prefix.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;

Expected<UnitNetwork> network_of(const Graph& graph, const Domain& domain = {}) {
  return testing_support::units_of({.graph = &graph, .domain = domain});
}

// The best multipliers that were proved; rho is infinite if none were.
LipsdpGuess solve(const UnitNetwork& network, double gap = 1e-4) {
  LipsdpGuess best{{}, HUGE_VAL, 0};
  const auto prove = [&](const LipsdpGuess& guess) {
    if (!proves(network, guess.multipliers, guess.rho)) return false;
    if (guess.rho < best.rho) best = guess;
    return true;
  };
  solve_lipsdp(
      network, gap, *RunClock::by_wall(HUGE_VAL), [] { return false; }, prove);
  return best;
}

// Two layers with ReLU between them.
Graph two_layers(const std::vector<double>& a, const std::vector<double>& b, Index n, Index h,
                 Index m) {
  GraphMaker maker;
  const ValueId x = maker.input({1, n});
  const ValueId r = maker.add("Relu", {maker.add("MatMul", {x, maker.weights({n, h}, a)})});
  return maker.finish(maker.add("MatMul", {r, maker.weights({h, m}, b)}));
}

// relu(x) + relu(-x) = |x|: the two units are never active together. With free slopes s, t in
// [0, 1] the largest |s - t| is 1, and the relaxation is tight here: the layer product says 2.
TEST(Lipsdp, AbsoluteValueIsExact) {
  const auto net = network_of(two_layers({1, -1}, {1, 1}, 1, 2, 1));
  ASSERT_TRUE(net);
  const LipsdpGuess found = solve(*net);
  ASSERT_TRUE(proves(*net, found.multipliers, found.rho));
  const double bound = constant_up(*net, found.rho);
  EXPECT_GE(bound, 1);
  EXPECT_LE(bound, 1 + 1e-3);
}

// A proof of so many units costs more than many steps towards it: it is not tried in vain.
TEST(Lipsdp, DearProofsAreTriedWhenTheyCanSucceed) {
  Rng rng(3);
  GraphMaker maker;
  ValueId x = maker.input({1, 1000});
  const auto dense = [&](Index to) {
    return maker.add("MatMul", {x, maker.weights(random_tensor(rng, {1000, to}, -0.05, 0.05))});
  };
  for (int layer = 0; layer < 3; ++layer) x = maker.add("Relu", {dense(1000)});
  const auto net = network_of(maker.finish(dense(1)));
  ASSERT_TRUE(net);
  int proved = 0, failed = 0;
  solve_lipsdp(
      *net, 3e-3, *RunClock::by_work(1), [] { return false; },
      [&](const LipsdpGuess& guess) {
        const bool holds = proves(*net, guess.multipliers, guess.rho, {}, true);
        ++(holds ? proved : failed);
        return holds;
      });
  EXPECT_EQ(proved, 1);
  EXPECT_EQ(failed, 0);
}

// All weights positive: the constant is that of the linear network, and the bound meets it.
TEST(Lipsdp, PositiveWeightsAreExact) {
  const auto net = network_of(two_layers({1, 2, 3, 4}, {1, 0.5, 2, 1}, 2, 2, 2));
  ASSERT_TRUE(net);
  // [[1, 2], [3, 4]] [[1, 0.5], [2, 1]] = [[5, 2.5], [11, 5.5]]: rank one, norm sqrt(182.5).
  const LipsdpGuess found = solve(*net, 1e-6);
  const double bound = constant_up(*net, found.rho);
  ASSERT_TRUE(proves(*net, found.multipliers, found.rho));
  EXPECT_GE(bound, std::sqrt(182.5));
  EXPECT_LE(bound, std::sqrt(182.5) * (1 + 1e-5));
}

// A rho below the dual value cannot be proved, by no multipliers.
TEST(Lipsdp, NothingBelowTheDualIsProved) {
  Rng rng(3);
  for (int trial = 0; trial < 50; ++trial) {
    GraphMaker m;
    ValueId x = m.input({1, 4});
    for (const Index n : {6, 5}) {
      x = m.add("MatMul", {x, m.weights(random_tensor(rng, {m.shape(x).back(), n}, -1, 1))});
      x = m.add(trial % 2 == 0 ? "Relu" : "LeakyRelu", {x});
    }
    x = m.add("MatMul", {x, m.weights(random_tensor(rng, {5, 3}, -1, 1))});
    const Graph graph = m.finish(x);
    const auto net = network_of(graph);
    ASSERT_TRUE(net);
    const LipsdpGuess found = solve(*net);
    EXPECT_TRUE(proves(*net, found.multipliers, found.rho));
    EXPECT_LT(std::sqrt(found.rho / found.dual) - 1, 1e-3);
    for (const double scale : {0.5, 0.9, 1.0, 1.1, 2.0}) {
      Multipliers other = found.multipliers;
      for (auto& layer : other) {
        for (double& t : layer) t *= scale;
      }
      EXPECT_FALSE(proves(*net, other, found.dual * 0.9999));
    }
  }
}

TEST(Lipsdp, BadMultipliersProveNothing) {
  const auto net = network_of(two_layers({1, -1}, {1, 1}, 1, 2, 1));
  const LipsdpGuess found = solve(*net);
  const double rho = found.rho;
  ASSERT_TRUE(proves(*net, found.multipliers, rho));
  for (const double bad : {-1.0, 0.0, double(NAN), double(HUGE_VAL)}) {
    Multipliers m = found.multipliers;
    m[0][1] = bad;
    EXPECT_FALSE(proves(*net, m, rho)) << bad;
  }
  EXPECT_FALSE(proves(*net, {}, rho));
  EXPECT_FALSE(proves(*net, {{1.0}}, rho));
  EXPECT_FALSE(proves(*net, found.multipliers, NAN));
  EXPECT_FALSE(proves(*net, found.multipliers, HUGE_VAL));
  EXPECT_FALSE(proves(*net, found.multipliers, -1));
}

// Random chains with every kind of activation, convolutions, boxes, merged (inexact) weights: no
// proved quotient above the bound.
TEST(Lipsdp, NoQuotientAboveTheBound) {
  static const char* kNames[] = {"Relu",     "LeakyRelu", "Tanh", "Sigmoid", "Elu", "Gelu",
                                 "Softplus", "Abs",       "Mish", "Neg",     "Silu"};
  Rng rng(11);
  std::normal_distribution<double> normal;
  int solved = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    GraphMaker m;
    const auto pick = [&](std::uint64_t n) { return static_cast<Index>(rng() % n); };
    const auto activate = [&](ValueId v) {
      return m.add(kNames[rng() % std::size(kNames)], {v}, {}, 20);
    };
    ValueId x = pick(3) == 0 ? m.input({1, 2, 4}) : m.input({1, 1 + pick(5)});
    if (m.shape(x).size() == 3) {
      x = m.add("Conv", {x, m.weights(random_tensor(rng, {2, 2, 3}, -1, 1))},
                {{"pads", std::vector<Index>{1, 1}}});
      x = m.add("Flatten", {activate(x)});
    }
    for (Index depth = 1 + pick(3); depth > 0; --depth) {
      const Index n = m.shape(x).back(), k = 1 + pick(6);
      x = m.add("Gemm", {x, m.weights(random_tensor(rng, {n, k}, -1, 1)),
                         m.weights(random_tensor(rng, {k}, -1, 1))});
      if (pick(4) == 0) x = m.add("Div", {x, m.weights(random_tensor(rng, {k}, 0.5, 3))});
      x = activate(x);
    }
    x = m.add("MatMul",
              {x, m.weights(random_tensor(rng, {m.shape(x).back(), 1 + pick(3)}, -1, 1))});
    const Graph whole = m.finish(x);
    const Graph graph = select(whole, {}).graph;
    Query query{&whole, parse_norms("2"), {}};
    const auto size = static_cast<std::size_t>(input_size(whole));
    if (pick(2) == 0) {
      std::vector<double> low(size);
      for (double& e : low) e = normal(rng);
      std::vector<double> high = low;
      for (double& e : high) e += 0.3;
      query.domain.box = Box{Tensor::vector(low), Tensor::vector(high)};
    }
    const auto net = network_of(graph, query.domain);
    if (!net) continue;
    const LipsdpGuess found = solve(*net, 1e-3);
    const double upper =
        proves(*net, found.multipliers, found.rho) ? constant_up(*net, found.rho) : HUGE_VAL;
    solved += std::isfinite(upper) ? 1 : 0;
    for (int pair = 0; pair < 6; ++pair) {
      Witness w{std::vector<double>(size), std::vector<double>(size)};
      for (std::size_t i = 0; i < size; ++i) {
        const double a = std::uniform_real_distribution<double>()(rng);
        w.x[i] =
            query.domain.box ? query.domain.box->lower.doubles()[i] + 0.29 * a : 2 * normal(rng);
        w.y[i] = w.x[i] + (query.domain.box ? 0.01 : 1e-3) * a *
                              (pair % 2 == 0     ? 1
                               : normal(rng) > 0 ? 1
                                                 : -1);
      }
      if (!in_domain(query.domain, w.x) || !in_domain(query.domain, w.y)) continue;
      ASSERT_LE(proved_quotient(query, w), upper) << "trial " << trial;
    }
  }
  EXPECT_GT(solved, 1000);
}

// x + relu(x) has slopes 1 and 2; relu(x) - x has slopes -1 and 0, where the sum of gains is 2.
TEST(Lipsdp, ResidualConnectionsAreExact) {
  for (const double sign : {1.0, -1.0}) {
    GraphMaker m;
    const ValueId x = m.input({1, 3});
    const ValueId y = m.add("Relu", {x});
    const ValueId scaled = m.add("Mul", {x, m.weights({1}, {sign})});
    const auto net = network_of(m.finish(m.add("Add", {scaled, y})));
    ASSERT_TRUE(net);
    const double bound = constant_up(*net, solve(*net).rho), exact = sign > 0 ? 2 : 1;
    EXPECT_GE(bound, exact);
    EXPECT_LE(bound, exact * (1 + 1e-3));
  }
}

// Units that nothing moves or that move nothing, and parts that the iteration forgets because
// another part is much stronger.
TEST(Lipsdp, DeadAndWeakPartsDoNoHarm) {
  const auto dead = network_of(two_layers({1, 0, 5, -1, 0, 5}, {1, 7, 0, 1, 0, 0}, 2, 3, 2));
  ASSERT_TRUE(dead);
  const LipsdpGuess found = solve(*dead);
  EXPECT_EQ(dead->nodes[1].size, 1);
  EXPECT_LE(constant_up(*dead, found.rho), 10 * (1 + 1e-3));  // |[1, -1]| |[1, 7]|

  for (const double weak : {0.5, 1e-3, 1e-9}) {
    const auto two = network_of(two_layers({1, 0, 0, weak}, {1, 0, 0, weak}, 2, 2, 2));
    ASSERT_TRUE(two);
    const double bound = constant_up(*two, solve(*two).rho);
    EXPECT_GE(bound, 1);
    EXPECT_LE(bound, 1 + 1e-3) << weak;
  }
}

TEST(Lipsdp, NothingReachesTheOutput) {
  const auto net = network_of(two_layers({1, 0, 2, 0}, {0, 0, 3, 4}, 2, 2, 2));
  ASSERT_TRUE(net);
  EXPECT_TRUE(net->nodes.empty());
  EXPECT_TRUE(proves(*net, {}, 0));
  EXPECT_EQ(constant_up(*net, 0), 0);
}

// Two dense layers that are read side by side, and multipliers close to what can be proved.
TEST(Lipsdp, ThreadsChangeNoNetworkAndNoProof) {
  constexpr Index kInputs = 300, kUnits = 400;
  std::mt19937_64 rng(3);
  std::normal_distribution<double> normal(0, 0.05);
  std::vector<double> a(kInputs * kUnits), b(kUnits * kInputs);
  for (double& e : a) e = normal(rng);
  for (double& e : b) e = normal(rng);
  const Graph graph = two_layers(a, b, kInputs, kUnits, kInputs);
  const int before = threads();
  std::vector<UnitNetwork> seen;
  std::vector<double> least;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    auto net = network_of(graph);
    ASSERT_TRUE(net);
    const Multipliers t{std::vector<double>(kUnits, 2.0)};
    double low = 0, high = 1e6;
    while (high > low * (1 + 1e-15) && high - low > 1e-300) {
      const double middle = 0.5 * (low + high);
      if (middle <= low || middle >= high) break;
      (proves(*net, t, middle) ? high : low) = middle;
    }
    least.push_back(high);
    seen.push_back(*std::move(net));
  }
  set_threads(before);
  for (std::size_t i = 1; i < seen.size(); ++i) {
    EXPECT_EQ(least[i], least[0]);
    for (std::size_t k = 1; k < 3; ++k)
      EXPECT_EQ(seen[i].nodes[k].edges[0].map.weights, seen[0].nodes[k].edges[0].map.weights);
  }
  // Row r of the map is column r of the weights.
  const RowMatrix& map = seen[0].nodes[1].edges[0].map;
  const double scale = map.weights[1] / a[kUnits];
  EXPECT_EQ(map.weights[static_cast<std::size_t>(7 * kInputs + 5)], scale * a[5 * kUnits + 7]);
}

TEST(Lipsdp, RefusesWhatItDoesNotKnow) {
  GraphMaker m;
  const ValueId x = m.input({1, 3});
  const ValueId y = m.add("Mul", {m.add("Relu", {x}), x});
  const auto net = network_of(m.finish(y));
  EXPECT_FALSE(net);
  EXPECT_NE(net.reason(), "");
}

// A factor of the outputs' ellipsoid that was proved; empty if none was.
std::vector<double> ellipsoid_of(const UnitNetwork& net, Multipliers* with = nullptr) {
  std::vector<double> factor;
  solve_lipsdp_of_each(
      net, 1e-3, [] { return false; },
      [&](const Multipliers& multipliers) {
        factor = smallest_ellipsoid(net, multipliers);
        if (!proves_ellipsoid(net, multipliers, factor, {}, true)) factor.clear();
        if (with != nullptr) *with = multipliers;
        return !factor.empty();
      });
  return factor;
}

UnitNetwork random_network(Rng& rng, Index in, Index width, Index out, std::string_view function) {
  GraphMaker maker;
  ValueId x = maker.input({1, in});
  for (Index from = in, layer = 0; layer < 2; ++layer, from = width)
    x = maker.add(
        std::string(function),
        {maker.add("MatMul", {x, maker.weights(random_tensor(rng, {from, width}, -1, 1))})});
  x = maker.add("MatMul", {x, maker.weights(random_tensor(rng, {width, out}, -1, 1))});
  return *network_of(maker.finish(x));
}

// A row of dy/dx for the slopes that the bits of `pattern` choose, times `row`.
std::vector<double> gradient(const UnitNetwork& net, const std::vector<double>& row,
                             unsigned pattern) {
  std::vector<double> g = row;
  for (std::size_t k = net.nodes.size() - 1; k > 0; --k) {
    const RowMatrix& map = net.nodes[k].edges[0].map;
    std::vector<double> before(static_cast<std::size_t>(map.cols), 0);
    for (Index r = 0; r < map.rows; ++r) {
      const auto i = static_cast<std::size_t>(r);
      double slope = 1;
      if (!net.nodes[k].slopes.empty()) {
        slope = (pattern & 1U) != 0 ? net.nodes[k].slopes[i].hi : net.nodes[k].slopes[i].lo;
        pattern >>= 1U;
      }
      map.for_row(r, [&](Index c, std::size_t at) {
        before[static_cast<std::size_t>(c)] += slope * g[i] * map.weights[at];
      });
    }
    g = std::move(before);
  }
  return g;
}

double length(const std::vector<double>& v) {
  double sum = 0;
  for (const double e : v) sum += e * e;
  return std::sqrt(sum);
}

// c'GG'c >= |c'J|^2 for every pattern of slopes and many c, and nothing smaller is proved.
TEST(Ellipsoid, HoldsTheJacobiansOfAllPatterns) {
  Rng rng(21);
  for (const char* function : {"Relu", "Abs"}) {
    for (int trial = 0; trial < 4; ++trial) {
      const UnitNetwork net = random_network(rng, 3, 4, 3, function);
      Multipliers multipliers;
      const std::vector<double> factor = ellipsoid_of(net, &multipliers);
      ASSERT_EQ(factor.size(), 9U);
      for (unsigned pattern = 0; pattern < 256; ++pattern) {
        for (int k = 0; k < 4; ++k) {
          const Tensor c = random_tensor(rng, {3}, -1, 1);
          const std::vector<double> row{c.at(0), c.at(1), c.at(2)};
          std::vector<double> across(3, 0);
          for (std::size_t e = 0; e < 9; ++e) across[e % 3] += row[e / 3] * factor[e];
          EXPECT_LE(length(gradient(net, row, pattern)), length(across));
        }
      }
      std::vector<double> less = factor;
      for (double& e : less) e *= 1 - 1e-4;
      EXPECT_FALSE(proves_ellipsoid(net, multipliers, less));
      EXPECT_TRUE(proves_ellipsoid(net, multipliers, factor));
    }
  }
}

// Weak duality: the squares of all rows of G are not below the value of the dual, and near it.
TEST(Ellipsoid, TraceIsThatOfTheDual) {
  Rng rng(22);
  const UnitNetwork net = random_network(rng, 5, 12, 4, "Relu");
  LipsdpDual dual(net, 16, DualAim::kTrace);
  for (int step = 0; step < 400; ++step) dual.step();
  double trace = 0;
  for (const double e : ellipsoid_of(net)) trace += e * e;
  EXPECT_GE(trace, dual.value() * (1 - 1e-9));
  EXPECT_LE(trace, 1.02 * dual.value());
}

// (3, 4) relu(x): Q = [1, -T; -T, 2T] has 1 / (2T - T^2) for its inverse behind the unit, least
// for T = 1, so that G G' = [9, 12; 12, 16].
TEST(Ellipsoid, OfOneUnitIsALine) {
  const auto net = network_of(two_layers({1}, {3, 4}, 1, 1, 2));
  ASSERT_TRUE(net);
  const std::vector<double> factor = ellipsoid_of(*net);
  ASSERT_EQ(factor.size(), 4U);
  const double unit = std::ldexp(1.0, net->exponent);
  EXPECT_NEAR(factor[0] * unit, 3, 0.01);
  EXPECT_NEAR(factor[2] * unit, 4, 0.01);
  EXPECT_NEAR(factor[3] * unit, 0, 0.01);
}

TEST(Ellipsoid, BadFactorsProveNothing) {
  Rng rng(23);
  const UnitNetwork net = random_network(rng, 3, 4, 2, "Relu");
  Multipliers multipliers;
  const std::vector<double> factor = ellipsoid_of(net, &multipliers);
  ASSERT_TRUE(proves_ellipsoid(net, multipliers, factor));
  EXPECT_FALSE(proves_ellipsoid(net, multipliers, {}));
  EXPECT_FALSE(proves_ellipsoid(net, multipliers, {0, 0, 0, 0}));
  EXPECT_FALSE(proves_ellipsoid(net, multipliers, {factor[0], 1e-9, factor[2], factor[3]}));
  EXPECT_FALSE(proves_ellipsoid(net, multipliers, {NAN, 0, factor[2], factor[3]}));
  Multipliers negative = multipliers;
  negative[0][0] = -1;
  EXPECT_FALSE(proves_ellipsoid(net, negative, factor));
  EXPECT_TRUE(smallest_ellipsoid(net, negative).empty());
  Multipliers none = multipliers;
  for (double& t : none[1]) t = 0;
  EXPECT_TRUE(smallest_ellipsoid(net, none).empty());
}

// Behind the identity a cut network is the network.
TEST(Prefix, CutsWhereAllPasses) {
  Rng rng(24);
  const UnitNetwork net = random_network(rng, 3, 3, 2, "Relu");
  EXPECT_FALSE(passes_all(net, 0));
  EXPECT_TRUE(passes_all(net, 2));
  const UnitNetwork before = before_node(net, 2);
  ASSERT_EQ(before.nodes.size(), 3U);
  EXPECT_TRUE(before.nodes[2].slopes.empty());
  EXPECT_EQ(before.nodes[2].edges[0].map.weights, net.nodes[2].edges[0].map.weights);
  const UnitNetwork behind = behind_factor(net, 2, {1, 0, 0, 0, 1, 0, 0, 0, 1}, 3);
  ASSERT_EQ(behind.nodes.size(), 3U);
  EXPECT_EQ(behind.nodes[1].edges[0].map.weights[4], 8);
  EXPECT_EQ(behind.nodes[2].edges[0].from, 1U);
  EXPECT_EQ(behind.nodes[2].depth, 2);
  UnitNetwork around = net;
  around.nodes[3].edges.push_back({1, identity_rows(3)});
  EXPECT_FALSE(passes_all(around, 2));
  // What does not fit into a double any more has a radius.
  const UnitNetwork tiny = behind_factor(net, 2, {1, 0, 0, 0.3, 1, 0, 0, 0, 1}, -1073);
  EXPECT_GT(tiny.nodes[1].edges[0].map.radius_at(3), 0);
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "sdp/lmi.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bounds/boxes.h"
#include "estimate/lipsdp_solver.h"
#include "estimate/quotient.h"
#include "lipscope/select.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;

std::optional<SdpNetwork> network_of(const Graph& graph, const Domain& domain = {},
                                     std::string* reason = nullptr, Index most = 1000) {
  ValueBoxes boxes(graph, input_boxes(graph, domain));
  std::string why;
  auto network = as_sdp_network(
      graph, [&](ValueId id) -> const Box& { return boxes.at(id); }, most, why);
  if (reason != nullptr) *reason = why;
  return network;
}

// The best multipliers that were proved; rho is infinite if none were.
LipsdpGuess solve(const SdpNetwork& network, double gap = 1e-4) {
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
  const auto net = network_of(maker.finish(dense(1)), {}, nullptr, 5000);
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
    std::string reason;
    const auto net = network_of(graph, query.domain, &reason);
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

TEST(Lipsdp, RefusesWhatItDoesNotKnow) {
  GraphMaker m;
  const ValueId x = m.input({1, 3});
  const ValueId y = m.add("Mul", {m.add("Relu", {x}), x});
  std::string reason;
  EXPECT_FALSE(network_of(m.finish(y), {}, &reason));
  EXPECT_NE(reason, "");
}

}  // namespace
}  // namespace lipscope

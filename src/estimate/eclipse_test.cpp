// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "estimate/chain_for_test.h"
#include "estimate/eclipse_recursion.h"

namespace lipscope {
namespace {

using namespace testing_support;

const std::vector<std::string> kMethod{"eclipse-fast"};

std::optional<Bound> eclipse(const Query& query, ChainProof* proof = nullptr) {
  const Answer answer = find_bracket(query, {.methods = kMethod}, {});
  if (proof != nullptr && std::holds_alternative<MultiplierProof>(*answer.proof))
    *proof = std::get<MultiplierProof>(*answer.proof).chains[0];
  return answer.bracket.upper(Guarantee::kProved);
}

// One unit per layer: every step is exact.
TEST(EclipseFast, WidthOneIsExact) {
  const Graph graph = relu_chain(
      {matrix(2, 1, {3, 4}), matrix(1, 1, {-0.5}), matrix(1, 1, {2}), matrix(1, 2, {5, 12})});
  const auto bound = eclipse({&graph, parse_norms("2"), {}});
  ASSERT_TRUE(bound);
  EXPECT_GE(bound->value, 65);  // 5 * 0.5 * 2 * 13
  EXPECT_LE(bound->value, 65 * (1 + 1e-6));
}

// The layer product is 5.149; the largest norm of all activation patterns is 3.354.
TEST(EclipseFast, LiesBetweenThePatternsAndTheProduct) {
  const Graph graph = relu_chain({matrix(2, 2, {1, -1, 2, 1}), matrix(2, 2, {1, 0.5, -1, 2})});
  const auto bound = eclipse({&graph, parse_norms("2"), {}});
  ASSERT_TRUE(bound);
  EXPECT_GE(bound->value, 3.354101966);
  EXPECT_LE(bound->value, 5.0);
}

// P = diag(4, 1), S = 8 I, Y = 16 (8 I - P)^-1 = diag(4, 16 / 7): 2 sqrt(16 / 7) where the product
// says 4.
TEST(EclipseFast, OneLayerByHand) {
  const Graph graph = relu_chain({matrix(2, 2, {2, 0, 0, 1}), matrix(2, 2, {1, 0, 0, 2})});
  const double by_hand = 8 / std::sqrt(7.0);
  EXPECT_NEAR(eclipse({&graph, parse_norms("2"), {}})->value, by_hand, 1e-6 * by_hand);
}

TEST(EclipseFast, NoQuotientAboveTheBound) {
  Rng rng(21);
  int solved = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const Graph whole = pick(rng, 4) == 0 ? random_residual(rng) : random_chain(rng);
    const Graph graph = select(whole, {}).graph;
    const Query query{&graph, parse_norms("2"), random_domain(rng, graph)};
    const auto network = units_of(query);
    if (!network) continue;
    const auto bound = eclipse(query);
    ASSERT_TRUE(bound) << "trial " << trial;
    ++solved;
    ASSERT_LE(largest_quotient({&whole, query.norms, query.domain}, rng), bound->value) << trial;
    if (network->nodes.empty()) continue;
    EXPECT_GE(bound->value, (1 - 1e-9) * lipsdp_dual(*network)) << trial;
    if (is_chain(*network)) {
      EXPECT_LE(bound->value, (1 + 1e-4) * product_of_layers(*network)) << trial;
    }
  }
  EXPECT_GT(solved, 1200);
}

// Multipliers that couple neurons are not valid [global-1]: with v_1 = v_2 they see only z_1 - z_2
// and would prove that relu(x) - relu(x - 1) is constant.
TEST(EclipseFast, CoupledMultipliersWouldProveTooMuch) {
  const double t[2][2] = {{0.5, -0.5}, {-0.5, 0.5}}, rho = 0;
  Rng rng(5);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 100; ++trial) {
    const double dx = normal(rng), z[2] = {normal(rng), normal(rng)}, v[2] = {dx, dx};
    double form = rho * dx * dx - (z[0] - z[1]) * (z[0] - z[1]);
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) form += 2 * z[i] * t[i][j] * (z[j] - v[j]);
    }
    EXPECT_NEAR(form, 0, 1e-14);  // non-negative everywhere: "proves" the constant 0
  }
  GraphMaker m;
  const ValueId x = m.input({1, 1});
  const ValueId v = m.add("Gemm", {x, m.weights({1, 2}, {1, 1}), m.weights({2}, {0, -1})});
  const Graph graph = m.finish(m.add("MatMul", {m.add("Relu", {v}), m.weights({2, 1}, {1, -1})}));
  const Query query{&graph, parse_norms("2"), {}};
  EXPECT_GE(proved_quotient(query, {{0}, {1}}), 1 - 1e-12);
  EXPECT_GE(eclipse(query)->value, 1);
}

TEST(EclipseFast, ExtremeNetworks) {
  // No path from the input to the output.
  const Graph dead = relu_chain({matrix(2, 2, {1, 0, 2, 0}), matrix(2, 1, {0, 3})});
  const auto none = eclipse({&dead, parse_norms("2"), {}});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->value, 0);
  // 200 layers of different scales.
  Rng rng(9);
  for (const double scale : {1e-30, 1e-3, 1.0, 1e30}) {
    GraphMaker m;
    ValueId x = m.input({1, 3});
    for (int layer = 0; layer < 200; ++layer) {
      const double s = layer % 2 == 0 ? scale : 1 / scale;
      x = m.add("MatMul", {x, m.weights(random_tensor(rng, {3, 3}, -s, s))});
      if (layer < 199) x = m.add("Relu", {x});
    }
    const Graph deep = m.finish(x);
    const auto bound = eclipse({&deep, parse_norms("2"), {}});
    ASSERT_TRUE(bound) << scale;
    EXPECT_TRUE(std::isfinite(bound->value) && bound->value > 0);
  }
}

TEST(EclipseFast, SaysWhyNot) {
  const Graph graph = relu_chain({matrix(1, 2, {1, 2}), matrix(2, 2, {1, 2, 3, 4})});
  const Answer other = find_bracket({&graph, parse_norms("inf"), {}}, {.methods = kMethod}, {});
  EXPECT_FALSE(other.bracket.upper(Guarantee::kEstimate));
  for (const MethodReport& report : other.methods) EXPECT_NE(report.skipped, "");
}

}  // namespace
}  // namespace lipscope

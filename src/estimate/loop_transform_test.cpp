// SPDX-License-Identifier: Apache-2.0
#include "sdp/loop_transform.h"

#include <gtest/gtest.h>

#include "estimate/chain_for_test.h"
#include "linalg/norm/operator_norm.h"
#include "net/transpose.h"

namespace lipscope {
namespace {

using namespace testing_support;

double norm_of(Index rows, Index cols, const std::vector<double>& entries, const char* norms) {
  return matrix_norm({rows, cols, entries.data()}, parse_norms(norms)).upper;
}

double loop_transform_bound_of(const Graph& graph, const char* norms) {
  const auto network = units_of({&graph, parse_norms(norms), {}});
  EXPECT_TRUE(network) << network.reason();
  return loop_transform_up(*network, parse_norms(norms));
}

// One hidden layer: |BA| / 2 + |B||A| / 2.
TEST(LoopTransform, OneLayerByHand) {
  const Graph graph = relu_chain({matrix(2, 2, {1, -1, 2, 1}), matrix(2, 2, {1, 0.5, -1, 2})});
  const double product = norm_of(2, 2, {2, 1, -1.5, 3}, "2"),
               layers = norm_of(2, 2, {1, 2, -1, 1}, "2") * norm_of(2, 2, {1, -1, 0.5, 2}, "2");
  const double by_hand = (product + layers) / 2, found = loop_transform_bound_of(graph, "2");
  EXPECT_LE(found, by_hand * (1 + 1e-6));
  EXPECT_GE(found, 3.354101966);  // the largest norm of all patterns
}

// relu(x) + relu(-x): 0 / 2 + 2 / 2 in l2, and the entries give the same.
TEST(LoopTransform, AbsoluteValueIsExact) {
  const Graph graph = relu_chain({matrix(1, 2, {1, -1}), matrix(2, 1, {1, 1})});
  for (const char* norms : {"2", "1", "inf", "3", "1:inf"}) {
    EXPECT_GE(loop_transform_bound_of(graph, norms), 1) << norms;
    EXPECT_LE(loop_transform_bound_of(graph, norms), 1 + 1e-6) << norms;
  }
}

// The norms of whole layers see the large row twice, the bounds of entries do not.
TEST(LoopTransform, EntriesHelp) {
  const std::vector<double> a{1, 0, 0, 100}, b{1, 0, 0, 0.01};
  const Graph graph = relu_chain({matrix(2, 2, a), matrix(2, 2, b)});
  EXPECT_LE(loop_transform_bound_of(graph, "inf"), 1 + 1e-6);
  EXPECT_LE(loop_transform_bound_of(graph, "1"), 1 + 1e-6);
}

TEST(LoopTransform, NoQuotientAboveTheBound) {
  Rng rng(31);
  int solved = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const Graph whole = pick(rng, 4) == 0 ? random_residual(rng) : random_chain(rng);
    const Graph graph = select(whole, {}).graph;
    const char* names[] = {"2", "1", "inf", "3", "1:inf", "2:inf", "inf:1", "1:2"};
    const NormPair norms = parse_norms(names[rng() % std::size(names)]);
    const Query query{&graph, norms, random_domain(rng, graph)};
    const auto network = units_of(query);
    if (!network) continue;
    const double bound = loop_transform_up(*network, norms);
    ASSERT_TRUE(std::isfinite(bound)) << trial;
    ++solved;
    ASSERT_LE(largest_quotient({&whole, norms, query.domain}, rng), bound) << trial;
    if (network->nodes.empty() || norms != parse_norms("2")) continue;
    EXPECT_GE(bound, (1 - 1e-9) * lipsdp_dual(*network)) << trial;
    if (is_chain(*network)) {
      EXPECT_LE(bound, (1 + 1e-5) * product_of_layers(*network)) << trial;
    }
    const UnitNetwork turned = transposed(*network);
    const double backward = loop_transform_up(turned, norms);
    EXPECT_GE(backward, (1 - 1e-9) * lipsdp_dual(*network)) << trial;
  }
  EXPECT_GT(solved, 1200);
}

// Every pattern of a small chain, also slopes that no input reaches, stays below.
TEST(LoopTransform, AboveEveryPattern) {
  Rng rng(37);
  for (int trial = 0; trial < 300; ++trial) {
    const Tensor a = random_tensor(rng, {3, 4}, -1, 1), b = random_tensor(rng, {4, 2}, -1, 1);
    const Graph graph = relu_chain({a, b});
    for (const char* norms : {"2", "1", "inf", "1:inf"}) {
      double most = 0;
      for (unsigned pattern = 0; pattern < 16; ++pattern) {
        std::vector<double> product(6);
        for (std::size_t k = 0; k < 4; ++k) {
          if ((pattern >> k & 1U) == 0) continue;
          for (std::size_t i = 0; i < 2; ++i) {
            for (std::size_t j = 0; j < 3; ++j)
              product[i * 3 + j] += b.doubles()[k * 2 + i] * a.doubles()[j * 4 + k];
          }
        }
        most = std::max(most, matrix_norm({2, 3, product.data()}, parse_norms(norms)).lower);
      }
      EXPECT_GE(loop_transform_bound_of(graph, norms), most * (1 - 1e-12)) << norms;
    }
  }
}

TEST(LoopTransform, HoldsForAllWeightsWithinTheirRadii) {
  Rng rng(57);
  for (int trial = 0; trial < 300; ++trial) {
    const double radius = std::pow(10.0, -static_cast<double>(pick(rng, 4)));
    const UnitNetwork chain = uncertain_chain(
        rng, {1 + pick(rng, 4), 1 + pick(rng, 3), 1 + pick(rng, 3), 1 + pick(rng, 3)}, radius);
    for (const char* name : {"2", "1", "inf", "3"}) {
      const NormPair norms = parse_norms(name);
      const double bound = loop_transform_up(chain, norms);
      for (int some = 0; some < 50; ++some)
        EXPECT_GE(bound, norm_of_some(chain, norms, rng) * (1 - 1e-12)) << name;
    }
  }
}

TEST(LoopTransform, ExtremeNetworks) {
  const Graph dead = relu_chain({matrix(2, 2, {1, 0, 2, 0}), matrix(2, 1, {0, 3})});
  EXPECT_EQ(loop_transform_bound_of(dead, "2"), 0);
  // Deep and wide: rounding of the products must not take over.
  Rng rng(9);
  for (const double scale : {1e-30, 1.0, 1e30}) {
    std::vector<Tensor> layers;
    for (int layer = 0; layer < 60; ++layer) {
      const double s = layer % 2 == 0 ? scale : 1 / scale;
      layers.push_back(random_tensor(rng, {8, 8}, -s, s));
    }
    const Graph deep = relu_chain(layers);
    const auto network = units_of({&deep, parse_norms("2"), {}});
    ASSERT_TRUE(network);
    const double bound = loop_transform_up(*network, parse_norms("2"));
    EXPECT_GT(bound, 0);
    EXPECT_LT(bound, 0.1 * product_of_layers(*network));
  }
}

TEST(LoopTransform, IsAMethod) {
  const Graph graph = relu_chain({matrix(2, 2, {1, -1, 2, 1}), matrix(2, 2, {1, 0.5, -1, 2})});
  for (const char* norms : {"2", "inf"}) {
    const Answer answer = find_bracket({&graph, parse_norms(norms), {}},
                                       {.methods = {"layer-product", "loop-transform"}}, {});
    const auto upper = answer.bracket.upper(Guarantee::kProved);
    ASSERT_TRUE(upper);
    EXPECT_EQ(upper->method, "loop-transform");
    EXPECT_EQ(std::get<RecomputedProof>(*answer.proof).bound, "loop-transform");
  }
}

}  // namespace
}  // namespace lipscope

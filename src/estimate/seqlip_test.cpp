// SPDX-License-Identifier: Apache-2.0
#include "sdp/seqlip.h"

#include <gtest/gtest.h>

#include "estimate/chain_for_test.h"
#include "linalg/norm/operator_norm.h"
#include "sdp/rank_one_cover.h"

namespace lipscope {
namespace {

using namespace testing_support;

const NormPair kEuclid = parse_norms("2");

UnitNetwork network_of(const Graph& graph) {
  auto network = units_of({&graph, kEuclid, {}});
  EXPECT_TRUE(network) << network.reason();
  return *std::move(network);
}
double seqlip_bound_of(const Graph& graph) { return seqlip_up(network_of(graph), kEuclid); }

using Vector = std::vector<double>;

double dot(const Vector& x, const Vector& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}
Vector times(const NearMatrix& a, const Vector& x) {
  Vector y(static_cast<std::size_t>(a.rows));
  for (std::size_t i = 0; i < y.size(); ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) y[i] += a.entries[i * x.size() + j] * x[j];
  }
  return y;
}
double form(const RankOneCover& cover, const Vector& x) {
  const double along = dot(cover.direction, x);
  return cover.along * along * along + cover.beside * dot(x, x);
}

NearMatrix random_matrix(Rng& rng, Index rows, Index cols) {
  NearMatrix a{rows, cols, Vector(static_cast<std::size_t>(rows * cols)), 0};
  for (double& e : a.entries) e = std::normal_distribution<double>()(rng);
  return a;
}
Vector random_vector(Rng& rng, Index n) { return random_matrix(rng, n, 1).entries; }

TEST(SeqLip, CoversAreAbove) {
  Rng rng(3);
  for (int trial = 0; trial < 500; ++trial) {
    const NearMatrix a = random_matrix(rng, 1 + pick(rng, 9), 1 + pick(rng, 9));
    const NearMatrix turned = transposed(a);
    const RankOneCover gram = cover_of_gram(a);
    const FactorCovers factors = cover_of_factors(a);
    const double norm = spectral_up(a);
    EXPECT_LE(gram.along + gram.beside, norm * norm * (1 + 1e-4));
    EXPECT_LE(factors.left.along + factors.left.beside, norm * (1 + 1e-4));
    EXPECT_LE(factors.right.along + factors.right.beside, norm * (1 + 1e-4));
    Vector x = random_vector(rng, a.rows);
    for (int step = 0; step < 30; ++step) {  // towards the strongest direction
      const Vector y = times(turned, x);
      EXPECT_GE(form(gram, x), dot(y, y) * (1 - 1e-12));
      // [K, A; A', H] is positive for all multiples of (x, y).
      const double k = form(factors.left, x), h = form(factors.right, y), mixed = dot(y, y);
      EXPECT_GE(k * h, mixed * mixed * (1 - 1e-12));
      x = times(a, y);
      const double size = std::sqrt(dot(x, x));
      for (double& e : x) e /= size;
    }
    const Vector z = random_vector(rng, a.cols), left = random_vector(rng, a.rows);
    const double mixed = dot(left, times(a, z));
    EXPECT_GE(form(factors.left, left) * form(factors.right, z), mixed * mixed * (1 - 1e-12));
  }
}

// The error adds to the second strongest direction, where a cover has no room.
TEST(SeqLip, CoversHoldWithinTheError) {
  for (const double angle : {0.0, 0.4, 1.0, 2.0}) {
    const double c = std::cos(angle), s = std::sin(angle), error = 0.5;
    const auto turned = [&](double second) {  // turn * diag(3, second)
      return NearMatrix{2, 2, {3 * c, -second * s, 3 * s, second * c}, 0};
    };
    NearMatrix a = turned(1);
    a.error = error;
    const NearMatrix other = turned(1 + error);
    const Vector x{-s, c}, y = times(transposed(other), x);
    EXPECT_GE(form(cover_of_gram(a), x), dot(y, y) * (1 - 1e-12)) << angle;
    const FactorCovers factors = cover_of_factors(a);
    EXPECT_GE(form(factors.left, x) * form(factors.right, y), dot(y, y) * dot(y, y) * (1 - 1e-12));
    EXPECT_GE(spectral_up(a), 3 + error);
  }
}

TEST(SeqLip, SmallLayersAreExact) {
  // relu(x) + relu(-x).
  const double one = seqlip_bound_of(relu_chain({matrix(1, 2, {1, -1}), matrix(2, 1, {1, 1})}));
  EXPECT_GE(one, 1);
  EXPECT_LE(one, 1 + 1e-6);
  const double golden =
      seqlip_bound_of(relu_chain({matrix(2, 2, {1, -1, 2, 1}), matrix(2, 2, {1, 0.5, -1, 2})}));
  EXPECT_GE(golden, 3.354101966249);
  EXPECT_LE(golden, 3.354101966251 * (1 + 1e-6));
}

// The strongest directions e_1 and (1, ..., 1) / sqrt(14) hardly meet. Squares of the singular
// values 9 and 1: 8 (8 / 14 + 1) + 9 instead of 81.
TEST(SeqLip, ClosedForm) {
  std::vector<double> a(196), b(196);
  for (std::size_t i = 0; i < 14; ++i) {
    a[i * 15] = i == 0 ? 3 : 1;
    for (std::size_t j = 0; j < 14; ++j) b[i * 14 + j] = (i == j ? 1 : 0) + 2.0 / 14;
  }
  const double bound = seqlip_bound_of(relu_chain({matrix(14, 14, a), matrix(14, 14, b)}));
  const double formula = std::sqrt(8 * (8.0 / 14 + 1) + 9);
  EXPECT_NEAR(bound, formula, 1e-4 * formula);
}

// The search that switches the unit which helps most ends at 2 and can get no further; the constant
// is 2.9. As an upper bound the greedy value is false.
TEST(SeqLip, TheGreedyValueIsNoBound) {
  const std::vector<double> b{-1, -1, 2.9};
  std::vector<int> on{1, 1, 1};
  const auto value = [&](const std::vector<int>& d) {
    return std::abs(d[0] * b[0] + d[1] * b[1] + d[2] * b[2]);
  };
  for (bool better = true; better;) {
    std::vector<int> best = on;
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<int> other = on;
      other[i] = 1 - other[i];
      if (value(other) > value(best)) best = other;
    }
    better = best != on;
    on = best;
  }
  EXPECT_EQ(value(on), 2);
  GraphMaker m;
  const ValueId x = m.input({1, 1});
  const ValueId v = m.add("Gemm", {x, m.weights({1, 3}, {1, 1, 1}), m.weights({3}, {-1, -1, 1})});
  const Graph graph = m.finish(m.add("MatMul", {m.add("Relu", {v}), m.weights({3, 1}, b)}));
  EXPECT_GT(proved_quotient({&graph, kEuclid, {}}, {{-0.5}, {0.5}}), 2.89);
  EXPECT_GE(seqlip_bound_of(graph), 2.9 * (1 - 1e-7));
}

TEST(SeqLip, NoQuotientAboveTheBound) {
  Rng rng(41);
  int solved = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const Graph whole = random_chain(rng);
    const Graph graph = select(whole, {}).graph;
    const Query query{&graph, kEuclid, random_domain(rng, graph)};
    const auto network = units_of(query);
    if (!network || !why_no_seqlip(*network, kEuclid).empty()) continue;
    ++solved;
    const double bound = seqlip_up(*network, kEuclid);
    ASSERT_TRUE(std::isfinite(bound)) << trial;
    ASSERT_LE(largest_quotient({&whole, kEuclid, query.domain}, rng), bound) << trial;
    if (!network->nodes.empty()) {
      EXPECT_LE(bound, (1 + 1e-4) * product_of_layers(*network)) << trial;
    }
  }
  EXPECT_GT(solved, 1200);
}

// Patterns found by switching units as long as it helps, small and large layers mixed.
TEST(SeqLip, AboveEveryPattern) {
  Rng rng(43);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Tensor> layers;
    for (Index from = 1 + pick(rng, 6), left = 2 + pick(rng, 3); left > 0; --left) {
      const Index to = left == 1 ? 1 + pick(rng, 3) : pick(rng, 2) == 0 ? 13 : 1 + pick(rng, 6);
      layers.push_back(random_tensor(rng, {from, to}, -1, 1));
      from = to;
    }
    std::vector<bool> on;
    for (std::size_t k = 0; k + 1 < layers.size(); ++k)
      on.insert(on.end(), static_cast<std::size_t>(layers[k].shape()[1]), true);
    const auto norm = [&](const std::vector<bool>& pattern) {
      const Index inputs = layers[0].shape()[0];
      Vector product(layers[0].doubles().begin(), layers[0].doubles().end());  // inputs x units
      std::size_t first = 0;
      for (std::size_t k = 1; k < layers.size(); ++k) {
        const Index n = layers[k].shape()[0], to = layers[k].shape()[1];
        Vector next(static_cast<std::size_t>(inputs * to));
        for (Index i = 0; i < inputs; ++i) {
          for (Index u = 0; u < n; ++u) {
            if (!pattern[first + static_cast<std::size_t>(u)]) continue;
            for (Index o = 0; o < to; ++o)
              next[static_cast<std::size_t>(i * to + o)] +=
                  product[static_cast<std::size_t>(i * n + u)] *
                  layers[k].doubles()[static_cast<std::size_t>(u * to + o)];
          }
        }
        first += static_cast<std::size_t>(n);
        product = std::move(next);
      }
      return matrix_norm({inputs, layers.back().shape()[1], product.data()}, kEuclid).lower;
    };
    double most = norm(on);
    for (int move = 0; move < 100; ++move) {
      std::vector<bool> other = on;
      const std::size_t unit = rng() % other.size();
      other[unit] = !other[unit];
      const double value = norm(other);
      if (value < most) continue;
      most = value;
      on = other;
    }
    EXPECT_GE(seqlip_bound_of(relu_chain(layers)), most * (1 - 1e-6)) << trial;
  }
}

TEST(SeqLip, HoldsForAllWeightsWithinTheirRadii) {
  Rng rng(59);
  for (int trial = 0; trial < 300; ++trial) {
    const double radius = std::pow(10.0, -static_cast<double>(pick(rng, 4)));
    const auto width = [&] { return pick(rng, 3) == 0 ? 13 : 1 + pick(rng, 3); };
    const UnitNetwork chain =
        uncertain_chain(rng, {1 + pick(rng, 4), width(), width(), 1 + pick(rng, 3)}, radius);
    const double bound = seqlip_up(chain, kEuclid);
    for (int some = 0; some < 100; ++some)
      EXPECT_GE(bound, norm_of_some(chain, kEuclid, rng) * (1 - 1e-12)) << trial;
  }
}

TEST(SeqLip, RefusesWhatIsNoChain) {
  Rng rng(7);
  const Graph graph = random_residual(rng);
  const UnitNetwork network = network_of(graph);
  EXPECT_NE(why_no_seqlip(network, kEuclid), "");
  const Graph chain = relu_chain({matrix(2, 2, {1, -1, 2, 1}), matrix(2, 2, {1, 0.5, -1, 2})});
  EXPECT_NE(why_no_seqlip(network_of(chain), parse_norms("inf")), "");
  EXPECT_EQ(why_no_seqlip(network_of(chain), kEuclid), "");
}

}  // namespace
}  // namespace lipscope

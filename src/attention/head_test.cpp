// SPDX-License-Identifier: Apache-2.0
#include "attention/head.h"

#include <gtest/gtest.h>

#include <array>

#include "attention/head_ball.h"
#include "attention/heads_for_test.h"
#include "attention/published.h"

namespace lipscope {
namespace {

using namespace testing_support;

constexpr Index kAll = Index{1} << 40;

HeadWeights unit_head(Index tokens) {
  const double one = 1;
  const IntervalMatrix weight(1, 1, {&one, 1});
  return {tokens, 1, 1, 1, weight, weight, weight, {}, {}, {}, {}};
}

// The slow twin: the Jacobian from difference quotients in long double.
std::vector<long double> output_of(const HeadWeights& h, const std::vector<double>& x, Index moved,
                                   long double by) {
  const auto affine = [&](const IntervalMatrix& w, const std::vector<Interval>& bias, Index i) {
    std::vector<long double> y(static_cast<std::size_t>(w.cols));
    for (Index c = 0; c < w.cols; ++c) {
      auto& sum = y[static_cast<std::size_t>(c)];
      sum = bias.empty() ? 0 : midpoint(bias[static_cast<std::size_t>(c)]);
      for (Index b = 0; b < h.width; ++b) {
        long double entry = x[static_cast<std::size_t>(i * h.width + b)];
        if (i * h.width + b == moved) entry += by;
        sum += entry * midpoint(w(b, c));
      }
    }
    return y;
  };
  std::vector<long double> out;
  for (Index i = 0; i < h.tokens; ++i) {
    const auto q = affine(h.query, h.query_bias, i);
    std::vector<long double> mean(static_cast<std::size_t>(h.value_width));
    long double total = 0;
    for (Index j = 0; j < h.tokens; ++j) {
      const auto k = affine(h.key, h.key_bias, j), v = affine(h.value, h.value_bias, j);
      long double score =
          h.mask.empty() ? 0 : midpoint(h.mask[static_cast<std::size_t>(i * h.tokens + j)]);
      for (std::size_t c = 0; c < q.size(); ++c) score += q[c] * k[c];
      const long double weight = std::exp(score);
      total += weight;
      for (std::size_t a = 0; a < v.size(); ++a) mean[a] += weight * v[a];
    }
    for (const long double m : mean) out.push_back(m / total);
  }
  return out;
}

TEST(Head, GoldenValueOfTwoTokens) {
  const HeadWeights head = unit_head(2);
  const HeadAt at(head, {0, 1});
  const JacobianNorm norm = at.explicit_norm(kAll);
  EXPECT_LE(norm.lower, 1.303152069592);
  EXPECT_GE(norm.upper, 1.303152069590);
  EXPECT_NEAR(norm.lower, 1.303152069591, 1e-11);
  EXPECT_NEAR(norm.upper, 1.303152069591, 1e-11);
  const auto column = at.push(std::array{1.0, 0.0});
  EXPECT_NEAR(column[0], 0.75, 1e-12);
  EXPECT_NEAR(column[1], 0.07232949, 1e-8);
}

TEST(Head, ProductsWithTheJacobianAreDerivatives) {
  std::mt19937_64 rng(3);
  for (const bool causal : {false, true}) {
    const HeadCase c = random_head(rng, {.bias = true, .causal = causal});
    const HeadAt at(c.head, c.tokens);
    for (Index column = 0; column < static_cast<Index>(c.tokens.size()); ++column) {
      std::vector<double> unit(c.tokens.size());
      unit[static_cast<std::size_t>(column)] = 1;
      const auto pushed = at.push(unit);
      const auto high = output_of(c.head, c.tokens, column, 1e-6L);
      const auto low = output_of(c.head, c.tokens, column, -1e-6L);
      for (std::size_t i = 0; i < pushed.size(); ++i) {
        EXPECT_NEAR(pushed[i], static_cast<double>((high[i] - low[i]) / 2e-6L), 1e-9);
        std::vector<double> out(pushed.size());
        out[i] = 1;
        EXPECT_NEAR(at.pull(out)[static_cast<std::size_t>(column)], pushed[i], 1e-12);
      }
    }
  }
}

TEST(Head, ExplicitNormIsTight) {
  std::mt19937_64 rng(5);
  for (int trial = 0; trial < 20; ++trial) {
    const HeadCase c = random_head(rng, {.tokens = 6, .width = 5, .bias = true});
    const HeadAt at(c.head, c.tokens);
    const JacobianNorm norm = at.explicit_norm(kAll);
    EXPECT_LE(norm.lower, norm.upper);
    EXPECT_LE(norm.upper, norm.lower * (1 + 1e-8));
    const double stretch = at.stretch_down(at.direction());
    EXPECT_LE(stretch, norm.upper);
    EXPECT_GE(stretch, norm.lower * (1 - 1e-8));
  }
}

TEST(Head, ExplicitNormHasALimit) {
  const HeadWeights head = unit_head(2);
  EXPECT_EQ(HeadAt(head, {0, 1}).explicit_norm(3).upper, kInf);
}

// Not globally Lipschitz: n = 2, d = 1, tokens (0, t).
TEST(Head, GrowsWithTheSquareOfTheTokens) {
  const HeadWeights head = unit_head(2);
  EXPECT_NEAR(HeadAt(head, {0, 10}).explicit_norm(kAll).lower, 25.5, 0.01);
  EXPECT_NEAR(HeadAt(head, {0, 100}).explicit_norm(kAll).lower, 2500.5, 0.01);
}

// A bound that forgets the query bias is false: 64 tokens of length 0.01, b_q = 1000.
TEST(Head, QueryBiasEntersTheBounds) {
  HeadWeights head = unit_head(64);
  head.query_bias = {point(1000)};
  std::vector<double> tokens(64, 0.005);
  tokens[0] = 0.01;
  const HeadAt at(head, tokens);
  const double truth = at.explicit_norm(kAll).lower;
  HeadWeights forgot = head;
  forgot.query_bias.clear();
  const double without = length_bound(forgot, 0.01, TokenNorm::kFrobenius);
  EXPECT_NEAR(truth, 14, 0.05);
  EXPECT_LT(without, 8.01);
  EXPECT_GE(length_bound(head, 0.01, TokenNorm::kFrobenius), truth);
  EXPECT_GE(at.covariance_bound(), truth);
  EXPECT_GE(at.block_bound(), truth);
  EXPECT_GE(yudin_bound(at), truth);
  EXPECT_FALSE(castin_bound(at, 0).has_value());
  EXPECT_FALSE(hu_bound(at, 0).has_value());
}

// n (n + 1) (|x| + r)^2 [|W_V| |W_Q| |W_K| + |W_V|], as printed, is 0.0012 at x = 0, r = 0.01.
TEST(Published, HuAsPrintedIsFalse) {
  const HeadWeights head = unit_head(2);
  const HeadAt at(head, {0, 0});
  const double printed = 2 * 3 * 0.01 * 0.01 * 2, truth = at.explicit_norm(kAll).lower;
  EXPECT_GT(truth, printed);
  EXPECT_NEAR(truth, 1, 1e-9);
  EXPECT_GE(*hu_bound(at, 0.01), truth);
}

// With W_K'W_Q in place of W_Q W_K': W_Q = e_1, W_K = e_2 has W_K'W_Q = 0.
TEST(Published, CastinAsPrintedIsFalse) {
  const std::array<double, 2> e1{1, 0}, e2{0, 1};
  const std::array<double, 4> identity{1, 0, 0, 1};
  const HeadWeights head{3,
                         2,
                         1,
                         2,
                         IntervalMatrix(2, 1, e1),
                         IntervalMatrix(2, 1, e2),
                         IntervalMatrix(2, 2, identity),
                         {},
                         {},
                         {},
                         {}};
  const double printed = std::sqrt(3.0) * std::sqrt(3.0);
  double largest = 0;
  std::mt19937_64 rng(1);
  std::uniform_real_distribution<double> angle(0, 6.283185307);
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<double> tokens;
    for (int i = 0; i < 3; ++i) {
      const double t = angle(rng);
      tokens.push_back(5.999 * std::cos(t));
      tokens.push_back(5.999 * std::sin(t));
    }
    const HeadAt at(head, tokens);
    const double stretch = at.stretch_down(at.direction(1e-3, 12));
    largest = std::max(largest, stretch);
    ASSERT_LE(stretch, *castin_bound(at, 0));
  }
  EXPECT_GT(largest, 9);
  EXPECT_GT(largest, printed);
}

// Eq. 57 needs |W_Q|^2: one token, W_Q = 2 I_4, the rest I. The layer is X W W' / c with c = 2.
TEST(Published, KimNeedsTheSquareOfTheWeights) {
  EXPECT_GE(kim_bound(1, 2, 1, 2), 2);
  EXPECT_NEAR(kim_bound(1, 2, 1, 2), 2, 1e-12);
  EXPECT_NEAR(distance_bound(1, 2, 1, 2), 2, 1e-12);
  for (const Index n : {2, 5, 50, 1000})
    EXPECT_LE(distance_bound(n, 1, 1, 1), kim_bound(n, 1, 1, 1));
}

TEST(Published, InverseOfPhi) {
  EXPECT_EQ(inverse_phi_up(1), 0);
  EXPECT_NEAR(inverse_phi_up(2), 0.278464542761, 1e-12);
  EXPECT_NEAR(inverse_phi_up(5), 0.717824512495, 1e-12);
  EXPECT_NEAR(inverse_phi_up(50), 2.133878896413, 1e-12);
  EXPECT_NEAR(inverse_phi_up(1000), 4.420501603943, 1e-12);
}

// Without normalised values it is not Lipschitz: tokens (0,0), (0,t), (t,0); with them ours holds
// and stays below Qi's from a few tokens on.
TEST(Published, CosineAttention) {
  for (const Index n : {2, 4, 8, 64}) {
    const CosineAttention head{n, 1, 1, 1, 1, 1, 0.01};
    EXPECT_LT(cosine_bound(head, TokenNorm::kFrobenius), qi_bound(head));
    EXPECT_LE(cosine_bound(head, TokenNorm::kTokenMax), cosine_bound(head, TokenNorm::kFrobenius));
  }
  // Bounded uniformly in the number of tokens.
  const CosineAttention many{1000000, 1, 1, 1, 1, 1, 1};
  EXPECT_LE(cosine_bound(many, TokenNorm::kFrobenius), 1 + 2 * std::exp(1.0) + 1e-9);
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Every bound of a head against proved lower bounds at points of its domain, on random heads.
// LIPSCOPE_HEADS=20000 tries as many.
#include <gtest/gtest.h>

#include <cstdlib>

#include "attention/head_ball.h"
#include "attention/heads_for_test.h"
#include "attention/published.h"
#include "base/parallel.h"

namespace lipscope {
namespace {

using namespace testing_support;

int head_count() {
  const char* text = std::getenv("LIPSCOPE_HEADS");
  return text != nullptr ? std::atoi(text) : 300;
}

HeadSpec random_spec(std::mt19937_64& rng) {
  const auto between = [&](Index low, Index high) {
    return std::uniform_int_distribution<Index>(low, high)(rng);
  };
  HeadSpec spec{between(1, 7), between(1, 5), between(1, 3), between(1, 4)};
  std::uniform_real_distribution<double> exponent(-2, 1.3);
  spec.score_scale = std::pow(10, exponent(rng));
  spec.token_scale = std::pow(10, exponent(rng) / 2);
  spec.bias = between(0, 1) == 1;
  spec.causal = between(0, 3) == 0;
  spec.normalised = spec.width > 2 && between(0, 1) == 1;
  return spec;
}

// The largest proved stretch from each token to each output row, in the token-max norm: a direction
// with tokens of length 1.
double token_max_stretch(const HeadAt& at, std::mt19937_64& rng) {
  const Index n = at.head().tokens, d = at.head().width, w = at.head().value_width;
  std::vector<double> x(at.tokens().size());
  std::normal_distribution<double> normal;
  for (double& e : x) e = normal(rng);
  double best = 0;
  for (int step = 0; step < 4; ++step) {
    for (Index i = 0; i < n; ++i) {
      double length = 0;
      for (Index b = 0; b < d; ++b)
        length += x[static_cast<std::size_t>(i * d + b)] * x[static_cast<std::size_t>(i * d + b)];
      for (Index b = 0; b < d && length > 0; ++b)
        x[static_cast<std::size_t>(i * d + b)] /= std::sqrt(length);
    }
    const auto y = at.push(x);
    Index top = 0;
    double longest = -1;
    for (Index i = 0; i < n; ++i) {
      double length = 0;
      for (Index a = 0; a < w; ++a)
        length += y[static_cast<std::size_t>(i * w + a)] * y[static_cast<std::size_t>(i * w + a)];
      if (length > longest) longest = length, top = i;
    }
    best = std::max(best, std::sqrt(longest));
    std::vector<double> weights(y.size());
    for (Index a = 0; a < w; ++a)
      weights[static_cast<std::size_t>(top * w + a)] = y[static_cast<std::size_t>(top * w + a)];
    x = at.pull(weights);
  }
  return best * (1 - 1e-9);
}

TEST(RandomHeads, NoBoundIsBelowWhatIsSeen) {
  std::mt19937_64 rng(11);
  std::uniform_real_distribution<double> exponent(-3, 0.5);
  for (int trial = 0; trial < head_count(); ++trial) {
    const HeadSpec spec = random_spec(rng);
    const HeadCase c = random_head(rng, spec);
    const HeadAt at(c.head, c.tokens);
    const JacobianNorm norm = at.explicit_norm(Index{1} << 30);
    const double seen = std::max(norm.lower, at.stretch_down(at.direction()));
    ASSERT_LE(seen, norm.upper) << trial;
    ASSERT_LE(seen, at.covariance_bound()) << trial;
    ASSERT_LE(seen, at.block_bound()) << trial;
    ASSERT_LE(seen, yudin_bound(at)) << trial;
    ASSERT_LE(seen, castin_bound(at, 0).value_or(kInf)) << trial;
    ASSERT_LE(seen, hu_bound(at, 0).value_or(kInf)) << trial;
    ASSERT_LE(token_max_stretch(at, rng), at.token_max_bound()) << trial;

    const double radius = spec.token_scale * std::pow(10, exponent(rng));
    const HeadBall ball(at, radius, TokenNorm::kFrobenius);
    const HeadBall each(at, radius, TokenNorm::kTokenMax);
    const double taylor = taylor_bound(at, norm.upper, radius, TokenNorm::kFrobenius);
    const double taylor_each = taylor_bound(at, at.token_max_bound(), radius, TokenNorm::kTokenMax);
    std::vector<double> steepest = at.direction();
    for (int k = 0; k < 4; ++k) {
      for (double& e : steepest) e = -e;
      const HeadAt there(c.head,
                         moved(rng, c.tokens, k < 2 ? steepest : std::vector<double>{}, radius));
      const double stretch = there.stretch_down(there.direction());
      ASSERT_LE(stretch, taylor) << trial;
      ASSERT_LE(stretch, ball.covariance_bound()) << trial;
      ASSERT_LE(stretch, ball.length_bound()) << trial;
      ASSERT_LE(stretch, yudin_bound(at, ball, radius)) << trial;
      ASSERT_LE(stretch, castin_bound(at, radius).value_or(kInf)) << trial;
      ASSERT_LE(stretch, hu_bound(at, radius).value_or(kInf)) << trial;
      const double token_max = token_max_stretch(there, rng);
      ASSERT_LE(token_max, taylor_each) << trial;
      ASSERT_LE(token_max, each.covariance_bound()) << trial;
      ASSERT_LE(token_max, each.length_bound()) << trial;
      for (std::size_t p = 0; p < there.shares().entries.size(); ++p) {
        ASSERT_TRUE(contains(ball.shares().entries[p], midpoint(there.shares().entries[p])));
        ASSERT_TRUE(contains(each.shares().entries[p], midpoint(there.shares().entries[p])));
      }
    }
  }
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Bounds of attention heads side by side: at a point and on balls, ours and those of the
// literature, each divided by the best proved lower bound. Random tokens with mean 0 and variance
// 1, Gaussian weights.
//
//   bench_attention [tokens] [width] [score scale] [seed]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>

#include "attention/head_ball.h"
#include "attention/heads_for_test.h"
#include "attention/published.h"

using namespace lipscope;
using namespace lipscope::testing_support;

namespace {

constexpr Index kMostEntries = Index{1} << 26;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The largest proved stretch at the centre and at ends of the ball along the steepest direction.
double best_lower(const HeadCase& c, const HeadAt& at, double radius) {
  const std::vector<double> direction = at.direction(1e-12, 400);
  double best = at.stretch_down(direction);
  std::mt19937_64 rng(1);
  for (const double sign : {1.0, -1.0}) {
    std::vector<double> tokens = c.tokens, along = direction;
    for (double& e : along) e *= sign;
    // Uphill a few times: to where the norm is largest along the direction found last.
    for (int step = 0; step < 3; ++step) {
      tokens = moved(rng, c.tokens, along, radius);
      const HeadAt there(c.head, tokens);
      const std::vector<double> steep = there.direction(1e-12, 400);
      best = std::max(best, there.stretch_down(steep));
      double same = 0;
      for (std::size_t i = 0; i < steep.size(); ++i) same += steep[i] * along[i];
      for (std::size_t i = 0; i < steep.size(); ++i) along[i] = same < 0 ? -steep[i] : steep[i];
    }
  }
  return best;
}

int check(const char* what, double upper, double lower) {
  if (upper >= lower) return 0;
  fmt::print("{} is below a proved lower bound: {} < {}\n", what, upper, lower);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int k, double otherwise) {
    return argc > k ? std::atof(argv[k]) : otherwise;
  };
  HeadSpec spec;
  spec.tokens = static_cast<Index>(number(1, 64));
  spec.width = spec.key_width = spec.value_width = static_cast<Index>(number(2, 64));
  spec.score_scale = number(3, 1);
  spec.normalised = true;
  std::mt19937_64 rng(static_cast<std::uint64_t>(number(4, 5)));
  const HeadCase c = random_head(rng, spec);

  auto start = std::chrono::steady_clock::now();
  const HeadAt at(c.head, c.tokens);
  const JacobianNorm norm = at.explicit_norm(kMostEntries);
  const double explicit_seconds = seconds_since(start);
  const double lower = std::max(norm.lower, at.stretch_down(at.direction(1e-12, 400)));
  fmt::print("n = {}, d = {}, score scale {}: |J| in [{:.9g}, {:.9g}]  ({:.2f} s)\n\n", spec.tokens,
             spec.width, spec.score_scale, lower, norm.upper, explicit_seconds);
  int failures = 0;
  fmt::print("at the point            ratio   seconds\n");
  const auto row = [&](const char* name, auto&& bound) {
    start = std::chrono::steady_clock::now();
    const double value = bound();
    fmt::print("{:<20} {:>9.4g}  {:>8.3f}\n", name, value / lower, seconds_since(start));
    failures += check(name, value, lower);
  };
  fmt::print("{:<20} {:>9.4g}  {:>8.3f}\n", "explicit", norm.upper / lower, explicit_seconds);
  row("covariance", [&] { return at.covariance_bound(); });
  row("block", [&] { return at.block_bound(); });
  row("Yudin", [&] { return yudin_bound(at); });
  row("Castin", [&] { return *castin_bound(at, 0); });
  row("Hu, corrected", [&] { return *hu_bound(at, 0); });
  const double centre = std::min({norm.upper, at.covariance_bound(), at.block_bound()});
  fmt::print(
      "\nradius   lower       Taylor  covariance  length    Yudin   Castin  best    seconds\n");
  for (const double radius : {1e-4, 1e-3, 0.01, 0.03, 0.1, 0.5}) {
    const double below = best_lower(c, at, radius);
    start = std::chrono::steady_clock::now();
    const HeadBall ball(at, radius, TokenNorm::kFrobenius);
    const double taylor = taylor_bound(at, centre, radius, TokenNorm::kFrobenius);
    const double covariance = ball.covariance_bound(), length = ball.length_bound();
    const double best = std::min({taylor, covariance, length}), spent = seconds_since(start);
    const double yudin = yudin_bound(at, ball, radius), castin = *castin_bound(at, radius);
    fmt::print("{:<8} {:<10.6g} {:>7.4g} {:>11.4g} {:>7.4g} {:>8.4g} {:>8.4g}  {:<7.4g} {:.3f}\n",
               radius, below, taylor / below, covariance / below, length / below, yudin / below,
               castin / below, best / below, spent);
    failures += check("a ball bound", std::min({best, yudin, castin}), below);
  }
  return failures == 0 ? 0 : 1;
}

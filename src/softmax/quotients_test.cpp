// SPDX-License-Identifier: Apache-2.0
// No quotient |J v|_q / |v|_p, rounded down, is above the proved norm, rounded up. No tolerance.
// LIPSCOPE_QUOTIENTS sets how many are tried.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "softmax/norm.h"

namespace lipscope {
namespace {

using Random = std::mt19937_64;
using Vector = std::vector<double>;

long quotient_count() {
  const char* text = std::getenv("LIPSCOPE_QUOTIENTS");
  return text == nullptr ? 1'000'000 : std::atol(text);
}

double unit_uniform(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

double exponent(Random& random) {
  switch (random() % 6) {
    case 0: return 1;
    case 1: return 2;
    case 2: return kInf;
    case 3: return 1 + unit_uniform(random);
    case 4: return 1 / (1e-3 + unit_uniform(random) * 0.999);
    default: return std::vector<double>{1.2, 1.5, 3, 6}[random() % 4];
  }
}

// Rows of all kinds: random, nearly equal, nearly decided, with ties.
Vector logits(Random& random) {
  std::normal_distribution<double> normal;
  Vector x(2 + random() % (random() % 8 == 0 ? 60 : 8));
  const double scale = std::exp(2 * normal(random));
  for (double& v : x) v = scale * normal(random);
  const std::size_t kind = random() % 6;
  if (kind == 0) x[1] = x[0] = std::max(x[0], x[1]) + 3;
  if (kind == 1) x[1] = x[0] * (1 + 1e-13);
  if (kind == 2) x[0] += 300 * unit_uniform(random);
  if (kind == 3) {
    for (double& v : x) v *= 1e-7;
  }
  if (kind == 4) {
    for (std::size_t i = 2; i < x.size(); ++i) x[i] -= 20 + 700 * unit_uniform(random);
  }
  return x;
}

// Directions near the worst found, signs, unit vectors, noise.
Vector direction(Random& random, const Vector& worst) {
  std::normal_distribution<double> normal;
  Vector v(worst.size());
  switch (random() % 5) {
    case 0:
      for (double& x : v) x = normal(random);
      break;
    case 1:
      for (double& x : v) x = random() % 2 == 0 ? 1 : -1;
      break;
    case 2: v[random() % v.size()] = 1; break;
    default: {
      const double noise = std::pow(10, -12 * unit_uniform(random));
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = worst[i] * (1 + noise * normal(random));
    }
  }
  return v;
}

TEST(SoftmaxQuotients, NoneAboveTheProvedNorms) {
  Random random(20250101);
  const long wanted = quotient_count();
  constexpr int kPerRow = 100;
  double closest = 0;
  for (long tried = 0; tried < wanted;) {
    const double p = exponent(random), q = random() % 3 == 0 ? p : exponent(random);
    const SoftmaxNorm norm(NormPair{Norm(p), Norm(q)});
    for (int r = 0; r < 10; ++r) {
      const double lambda = (random() % 4 == 0 ? -1 : 1) * std::exp(2 * unit_uniform(random) - 1);
      const SoftmaxRow row(logits(random), lambda);
      if (row.weights().size() < 2) continue;
      const double upper = norm(row).upper;
      const double global = softmax_global_norm(norm.norms(), 2, lambda).hi;
      ASSERT_LE(upper, global);
      const Vector worst = norm.worst_direction(row);
      for (int k = 0; k < kPerRow; ++k, ++tried) {
        const Vector v = k == 0 ? worst : direction(random, worst);
        const double quotient = softmax_quotient_down(row, v, norm.norms());
        ASSERT_LE(quotient, upper) << norm.norms().name() << " n " << row.size();
        closest = std::max(closest, quotient / upper);
      }
    }
  }
  EXPECT_GT(closest, 0.999999);
}

// The same for differences of values instead of derivatives, enclosed entry by entry.
TEST(SoftmaxQuotients, NoDifferenceAboveTheGlobalConstant) {
  Random random(7);
  const long wanted = quotient_count() / 20;
  for (long tried = 0; tried < wanted; ++tried) {
    const NormPair norms{Norm(exponent(random)), Norm(exponent(random))};
    const Vector x = logits(random);
    std::normal_distribution<double> normal;
    const double size = std::pow(10, 1 - 4 * unit_uniform(random));
    Vector y = x;
    for (double& v : y) v += size * normal(random);
    const SoftmaxRow a(x, 1), b(y, 1);
    std::vector<Interval> at_a(x.size(), Interval{0, a.lost()}),
        at_b(x.size(), Interval{0, b.lost()});
    for (std::size_t k = 0; k < a.weights().size(); ++k)
      at_a[static_cast<std::size_t>(a.places()[k])] = a.probability(k);
    for (std::size_t k = 0; k < b.weights().size(); ++k)
      at_b[static_cast<std::size_t>(b.places()[k])] = b.probability(k);
    Vector out, in;
    for (std::size_t i = 0; i < x.size(); ++i) {
      out.push_back(mignitude(at_a[i] - at_b[i]));
      in.push_back(magnitude(point(x[i]) - point(y[i])));
    }
    const double below = pnorm_up(in, norms.in.p());
    if (!(below > 0)) continue;
    ASSERT_LE(div_down(pnorm_down(out, norms.out.p()), below), softmax_global_norm(norms, 2, 1).hi);
  }
}

}  // namespace
}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// sampling: the largest norm of the Jacobian at random points.
//
// Needs      a ball or a box, derivatives of all operators on the way.
// Gives      lower bound, not proved: products with J carry their rounding. Where difference
//            quotients next to a point do not confirm its Jacobian (a kink), the quotient.
// Cost       at most a second and a twentieth of the time that is left, for up to 8192 points with
//            some ten products with J and with J' each. The same seed draws the same points; time
//            only cuts them short.
// Certifies  nothing.
// Theory     docs/theory/estimates.md [estimates-1], [estimates-2].
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimate/method.h"
#include "estimate/norm_sampler.h"

namespace lipscope {
namespace {

double end_of_sampling(const MethodRun& run) {
  return run.now() + std::min(run.seconds_left() / 20, 1.0);
}

// The steepest difference quotient of two points next to the maximum, both in the domain.
double quotient_near(const Query& query, const DomainSampler& domain,
                     const SampledMaximum& maximum) {
  constexpr int kLengths = 8;
  std::vector<double> a, b;
  const auto add = [&](double from, double to) {
    std::vector<double> x = maximum.point, y = maximum.point;
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] += from * maximum.direction[i];
      y[i] += to * maximum.direction[i];
    }
    domain.projection().apply(x);
    domain.projection().apply(y);
    if (!in_domain(query.domain, x) || !in_domain(query.domain, y)) return;
    a.insert(a.end(), x.begin(), x.end());
    b.insert(b.end(), y.begin(), y.end());
  };
  double length = domain.extent();
  for (int i = 0; i < kLengths; ++i) {
    length *= 0.1;
    add(-length, length);
    add(0, length);
    add(-length, 0);
  }
  if (a.empty()) return 0;
  return std::ranges::max(quotient_values(*query.graph, query.norms, a, b));
}

void run_sampling(const MethodRun& run) {
  constexpr Index kChunk = 8, kPoints = 8192;
  constexpr std::size_t kTop = 4;
  constexpr double kSame = 1e-4;
  const double end = end_of_sampling(run);
  const auto is_over = [&] { return run.should_stop() || run.passed(end); };
  const NormSampler sampler(run.query, run.context.seed);
  std::vector<SampledMaximum> top;
  Index points = 0;
  for (std::uint64_t first = 0; points < kPoints && !is_over(); first += kChunk) {
    for (SampledMaximum& maximum : sampler.draw(first, kChunk, is_over)) {
      if (maximum.point.empty()) continue;
      points += sampler.points();
      top.push_back(std::move(maximum));
    }
    std::ranges::stable_sort(top, std::ranges::greater{}, &SampledMaximum::value);
    if (top.size() > kTop) top.resize(kTop);
    if (points == 0) break;
  }
  if (top.empty()) return run.decline("no point of the domain was found in its share of the time");
  double best = 0;
  for (const SampledMaximum& maximum : top) {
    if (maximum.value <= best) break;
    const double quotient = quotient_near(run.query, sampler.domain(), maximum);
    best = std::max(best, quotient >= maximum.value * (1 - kSame) ? maximum.value : quotient);
  }
  run.report({best, Guarantee::kReal, "sampling"},
             {.note = fmt::format("{} points at random", points)});
}

}  // namespace

std::vector<Method> method_sampling() {
  return {{.info = {.id = "sampling",
                    .side = "lower",
                    .summary = "largest norm of the Jacobian at random points",
                    .theory = "estimates-2",
                    .guarantee = Guarantee::kReal},
           .unsupported = NormSampler::unsupported,
           .run = run_sampling}};
}

}  // namespace lipscope

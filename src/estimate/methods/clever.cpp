// SPDX-License-Identifier: Apache-2.0
// clever: where the largest norms of random Jacobians would end.
//
// Needs      a ball or a box, derivatives of all operators on the way.
// Gives      upper side, an estimate and no bound: the end point of a reverse Weibull law fitted to
//            the maxima of batches. Nothing when the law does not fit, has no end in sight, or
//            contradicts what is proved.
// Cost       at most two seconds and a tenth of the time that is left, for up to 100 batches of
//            256 points with some ten products with J and with J' each. The same seed draws the
//            same points; time only cuts them short.
// Certifies  nothing.
// Theory     docs/theory/estimates.md [estimates-1], [estimates-3], [estimates-4]; after Weng et
// al.
//            2018.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimate/method.h"
#include "estimate/norm_sampler.h"
#include "estimate/reverse_weibull.h"

namespace lipscope {
namespace {

constexpr std::size_t kBatches = 100, kFewestBatches = 30;
constexpr Index kBatchPoints = 256;
constexpr double kSignificance = 0.05;
constexpr double kSame = 1e-6;  // relative; maxima that are one number up to rounding

double end_of_clever(const MethodRun& run) {
  return run.now() + std::min(run.seconds_left() / 10, 2.0);
}

struct Batches {
  std::vector<double> maxima;
  Index points = 0;  // in each
};

// Draws join into at most kBatches batches of the same size.
Batches draw_batches(const MethodRun& run) {
  constexpr Index kChunk = 8;
  const double end = end_of_clever(run);
  const auto is_over = [&] { return run.should_stop() || run.passed(end); };
  NormSampler sampler(run.query, run.context.seed);
  sampler.warm_up(is_over);
  const auto wanted = kBatches * static_cast<std::size_t>(kBatchPoints / sampler.points());
  std::vector<double> draws;
  for (std::uint64_t first = 0; draws.size() < wanted && !is_over(); first += kChunk) {
    for (const SampledMaximum& maximum : sampler.draw(first, kChunk, is_over)) {
      if (maximum.complete && draws.size() < wanted) draws.push_back(maximum.value);
    }
    if (draws.empty()) break;
  }
  const std::size_t joined = std::max<std::size_t>(1, draws.size() / kBatches);
  Batches batches{.maxima = {}, .points = sampler.points() * static_cast<Index>(joined)};
  for (std::size_t i = 0; i + joined <= draws.size(); i += joined)
    batches.maxima.push_back(std::ranges::max(std::span(draws).subspan(i, joined)));
  if (batches.maxima.size() > kBatches) batches.maxima.resize(kBatches);
  return batches;
}

void report(const MethodRun& run, double value, std::string note) {
  const auto lower = run.found.lower(Guarantee::kProved);
  const auto upper = run.found.upper(Guarantee::kProved);
  if (lower && value < lower->value) {
    return run.decline(
        fmt::format("its estimate {:.6g} is below the proved lower bound ({})", value, note));
  }
  if (upper && value > upper->value) {
    return run.decline(
        fmt::format("its estimate {:.6g} is above the proved upper bound ({})", value, note));
  }
  run.report({value, Guarantee::kEstimate, "clever"}, {.note = std::move(note)});
}

void run_clever(const MethodRun& run) {
  const auto [maxima, points] = draw_batches(run);
  const std::string drawn = fmt::format("{} batches of {} points", maxima.size(), points);
  if (maxima.size() < kFewestBatches) {
    return run.decline(
        fmt::format("{} in its share of the time; the fit needs {}", drawn, kFewestBatches));
  }
  const double largest = std::ranges::max(maxima);
  const auto ties =
      std::ranges::count_if(maxima, [&](double e) { return e >= largest * (1 - kSame); });
  if (ties > 1) {
    return report(run, largest,
                  fmt::format("{}; {} of them end at the same largest value", drawn, ties));
  }
  const auto law = fit_reverse_weibull(maxima);
  if (!law) {
    return run.decline(
        fmt::format("{}; their maxima, up to {:.6g}, show no end point", drawn, largest));
  }
  std::mt19937_64 rng(run.context.seed);
  const double p = fit_p_value(maxima, *law, rng);
  std::string fit = fmt::format("{}; reverse Weibull of shape {:.2f}, largest {:.6g}, p = {:.2f}",
                                drawn, law->shape, largest, p);
  if (p < kSignificance) return run.decline(fmt::format("{}: it does not fit", fit));
  report(run, law->end, std::move(fit));
}

}  // namespace

std::vector<Method> method_clever() {
  return {{.info = {.id = "clever",
                    .side = "upper",
                    .summary = "end point of the law of the largest norms at random points",
                    .theory = "estimates-4",
                    .guarantee = Guarantee::kEstimate},
           .unsupported = NormSampler::unsupported,
           .run = run_clever}};
}

}  // namespace lipscope

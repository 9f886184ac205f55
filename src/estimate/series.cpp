// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lipscope/bound.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

// Without an upper bound, as after an interrupt, a product of gains is better than nothing.
void add_quick_upper(const Query& query, const RunContext& context, Answer& answer) {
  constexpr double kSeconds = 0.2;
  if (answer.bracket.upper(Guarantee::kProved)) return;
  RunContext go_on = context;
  if (!context.clock->counts_work() || context.clock->stop_requested())
    go_on.clock = RunClock::by_wall(kSeconds);
  Answer quick = find_bracket(
      query, {.time = std::chrono::duration<double>(kSeconds), .methods = {"layer-product", "dag"}},
      go_on);
  const auto upper = quick.bracket.upper(Guarantee::kProved);
  if (!upper) return;
  answer.bracket.add_upper(*upper);
  answer.proof = std::move(quick.proof);
  for (std::size_t i = 0; i < quick.methods.size(); ++i) {
    if (quick.methods[i].bound) answer.methods[i] = std::move(quick.methods[i]);
  }
}

}  // namespace

std::vector<RadiusAnswer> find_series(const Query& query, std::span<const double> radii,
                                      const Budget& budget, const RunContext& context) {
  if (!query.domain.ball || !std::ranges::is_sorted(radii))
    throw Error(ErrorCode::kUsage, "a series needs a ball and radii that grow");
  const double end = context.clock->now() + budget.time.count();
  RunContext warm = context;
  std::vector<RadiusAnswer> series;
  for (std::size_t i = 0; i < radii.size(); ++i) {
    Query at_radius = query;
    at_radius.domain.ball->radius = radii[i];
    Budget share = budget;
    share.time = std::chrono::duration<double>(std::max(0.0, end - context.clock->now()) /
                                               static_cast<double>(radii.size() - i));
    RadiusAnswer found{radii[i], find_bracket(at_radius, share, warm), {}};
    if (budget.methods.empty()) add_quick_upper(at_radius, warm, found.answer);
    found.bracket = found.answer.bracket;
    if (found.answer.witness)
      warm.hints = {{*found.answer.witness, found.answer.witnessed->method}};
    series.push_back(std::move(found));
  }
  // A lower bound without a witness, such as that of a single point, holds for larger balls, too.
  for (std::size_t i = 1; i < series.size(); ++i) {
    if (const auto lower = series[i - 1].bracket.lower(Guarantee::kProved))
      series[i].bracket.add_lower(*lower);
  }
  for (std::size_t i = series.size(); i-- > 1;) {
    if (const auto upper = series[i].bracket.upper(Guarantee::kProved))
      series[i - 1].bracket.add_upper(*upper);
  }
  return series;
}

}  // namespace lipscope

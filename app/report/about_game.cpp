// SPDX-License-Identifier: Apache-2.0
// Equilibria of entropy-regularised games.
#include <fmt/format.h>

#include "report/reading.h"

namespace lipscope::app {
namespace {

Plot strategy_plot(const std::string& title, const Json& strategy, std::optional<double> away) {
  constexpr std::size_t kMostNames = 40;
  Series bars{.name = title, .kind = Series::Kind::kBars};
  Plot plot{.title = title, .x_label = "action", .y_label = "probability"};
  for (std::size_t i = 0; i < strategy.size(); ++i) {
    bars.x.push_back(static_cast<double>(i) - 0.5);
    bars.y.push_back(number(strategy[i]).value_or(0));
    bars.hints.push_back(fmt::format("action {}: {:.6g}", i, bars.y.back()));
    if (strategy.size() <= kMostNames) plot.names.push_back(fmt::format("{}", i));
  }
  bars.x.push_back(static_cast<double>(strategy.size()) - 0.5);
  plot.series.push_back(std::move(bars));
  if (away)
    plot.note =
        fmt::format("Within {} of the equilibrium in ℓ1, proved.", rounded(*away, Side::kUpper));
  return plot;
}

}  // namespace

Report report_on_game(const Json& document) {
  const auto size = [&](const char* key) { return number(document, key).value_or(0); };
  Report report{.title = "Entropy-regularised game",
                .subtitle = fmt::format("{:g} × {:g} actions · τ = {:g}", size("rows"),
                                        size("cols"), size("tau"))};
  const Json& value = member(document, "value_bounds");
  report.facts = {
      bound_fact("value, lower", member(value, "lower"), Side::kLower),
      bound_fact("value, upper", member(value, "upper"), Side::kUpper),
      bound_fact("duality gap", member(document, "gap"), Side::kUpper),
      bound_fact("distance to the equilibrium", member(document, "distance"), Side::kUpper)};
  report.sections.push_back({"Strategies",
                             "",
                             {strategy_plot("Row player, minimising", member(document, "x"),
                                            number(member(document, "distance_x"), "value")),
                              strategy_plot("Column player, maximising", member(document, "y"),
                                            number(member(document, "distance_y"), "value"))}});
  Json rest = document;
  for (const char* shown : {"x", "y", "rows", "cols", "tau", "value"}) rest.erase(shown);
  for (Section& section : report_on_anything(rest).sections) {
    section.title = "All values";
    report.sections.push_back(std::move(section));
  }
  return report;
}

}  // namespace lipscope::app

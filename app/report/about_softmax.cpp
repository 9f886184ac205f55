// SPDX-License-Identifier: Apache-2.0
// Softmax rows.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/reading.h"

namespace lipscope::app {
namespace {

std::vector<Block> empirical_plots(const Json& document) {
  std::vector<std::string> norms;
  for (const Json& row : member(document, "empirical")) {
    const std::string norm = text_of(row, "norm");
    if (std::ranges::find(norms, norm) == norms.end()) norms.push_back(norm);
  }
  const double lambda = std::fabs(number(document, "lambda").value_or(1));
  std::vector<Block> plots;
  for (const std::string& norm : norms) {
    // λ/2 bounds the quotients of every norm to itself; others have a constant of their own.
    const double whole =
        number(member(member(document, "global"), norm.c_str()), "value").value_or(lambda / 2);
    const bool half = std::fabs(whole - lambda / 2) <= 1e-9 * lambda;
    Plot plot{.title = "Empirical constants, " + norm_text(norm),
              .x_label = "size of the perturbation",
              .y_label = "‖difference of softmax‖ / ‖perturbation‖",
              .log_x = true,
              .series = {{.name = "worst direction"}, {.name = "random directions"}},
              .rules = {{whole, fmt::format("{} = {:g}", half ? "λ/2" : "global", whole)}}};
    for (const Json& row : member(document, "empirical")) {
      const auto epsilon = number(row, "epsilon");
      if (text_of(row, "norm") != norm || !epsilon) continue;
      const char* const keys[] = {"directed_max", "random_max"};
      for (std::size_t k = 0; k < 2; ++k) {
        const auto value = number(row, keys[k]);
        if (!value) continue;
        plot.series[k].x.push_back(*epsilon);
        plot.series[k].y.push_back(*value);
        plot.series[k].hints.push_back(fmt::format("{:g}: {:.6g}", *epsilon, *value));
      }
    }
    plot.note = "Real: measured quotients, each a lower bound up to rounding.";
    plots.emplace_back(std::move(plot));
  }
  return plots;
}

Plot row_histogram(const Json& document, const std::string& norm, double most) {
  constexpr std::size_t kBars = 25;
  Series bars{.name = "rows", .kind = Series::Kind::kBars};
  std::vector<int> counts(kBars);
  for (const Json& row : member(document, "local")) {
    const Json& bounds = member(member(row, "norms"), norm.c_str());
    const auto value = number(member(bounds, "upper"), "value");
    if (value && most > 0 && std::isfinite(*value / most))
      ++counts[static_cast<std::size_t>(std::clamp(*value / most * kBars, 0.0, kBars - 1.0))];
  }
  for (std::size_t k = 0; k <= kBars; ++k) {
    bars.x.push_back(most * static_cast<double>(k) / kBars);
    if (k == kBars) break;
    bars.y.push_back(counts[k]);
    bars.hints.push_back(fmt::format("{} rows", counts[k]));
  }
  return {.title = "Local constants of the rows, " + norm_text(norm),
          .x_label = "constant",
          .y_label = "rows",
          .series = {std::move(bars)},
          .note = "Proved upper bounds."};
}

}  // namespace

Report report_on_softmax(const Json& document) {
  Report report{
      .title = "Softmax sensitivity",
      .subtitle = fmt::format("{:g} rows · λ = {:g}", number(document, "rows").value_or(0),
                              number(document, "lambda").value_or(1))};
  Table table{.title = "By norm",
              .columns = {"norm", "global", "largest local", "median local", "share above 0.4"}};
  Section local{"Local constants", "The constant of the softmax at each row of logits.", {}};
  for (const auto& [norm, bound] : member(document, "global").items()) {
    const Json& summary = member(member(document, "summary"), norm.c_str());
    table.rows.push_back({{norm_text(norm)},
                          bound_cell(bound, Side::kUpper),
                          number_cell(number(summary, "max"), Side::kUpper, "proved"),
                          number_cell(number(summary, "median"), Side::kUpper, "proved"),
                          number_cell(number(summary, "share_above_0.4"))});
    report.facts.push_back(bound_fact("global " + norm_text(norm), bound, Side::kUpper));
    if (const Json& rows = member(document, "local"); rows.is_array() && !rows.empty())
      local.blocks.emplace_back(row_histogram(document, norm, number(bound, "value").value_or(0)));
  }
  local.blocks.emplace_back(std::move(table));
  report.sections.push_back(std::move(local));
  std::vector<Block> plots = empirical_plots(document);
  if (!plots.empty()) {
    report.sections.push_back(
        {"Empirical constants",
         "Quotients at perturbations of growing size, beside the global constant.",
         std::move(plots)});
  }
  return report;
}

}  // namespace lipscope::app

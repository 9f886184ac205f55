// SPDX-License-Identifier: Apache-2.0
// Brackets and layers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/reading.h"
#include "terminal.h"

namespace lipscope::app {
namespace {

std::string domain_of(const Json& query) {
  const Json& domain = member(query, "domain");
  const std::string kind = text_of(domain, "kind");
  if (kind.empty() || kind == "everywhere") return "everywhere";
  const auto radius = number(domain, "radius");
  return radius ? fmt::format("{} of radius {:g}", kind, *radius) : kind;
}

std::string function_of(const Json& query) {
  const Json& output = member(query, "output");
  if (const auto index = number(output, "index")) return fmt::format(", output {:g}", *index);
  const Json& margin = member(output, "margin");
  if (margin.is_array() && margin.size() == 2)
    return fmt::format(", margin {} − {}", margin[0].dump(), margin[1].dump());
  return "";
}

// The best of each side as methods end one after another.
Plot bracket_over_time(const Json& methods) {
  Plot plot{.title = "Bracket over time",
            .x_label = "seconds",
            .y_label = "constant",
            .log_y = true,
            .series = {{.name = "upper bound, proved", .kind = Series::Kind::kStep, .colour = 0},
                       {.name = "lower bound, proved", .kind = Series::Kind::kStep, .colour = 1}}};
  double clock = 0, best[2] = {0, 0};
  for (const Json& row : methods) {
    const auto value = number(row, "value");
    clock += number(row, "seconds").value_or(0);
    if (!value || !std::isfinite(*value) || *value <= 0 || text_of(row, "guarantee") != "proved")
      continue;
    const int side = text_of(row, "side") == "upper" ? 0 : 1;
    const bool better = best[side] == 0 || (side == 0 ? *value < best[0] : *value > best[1]);
    if (!better) continue;
    best[side] = *value;
    Series& series = plot.series[static_cast<std::size_t>(side)];
    series.x.push_back(clock);
    series.y.push_back(*value);
    series.hints.push_back(
        fmt::format("{}: {:.6g} after {:.2f} s", text_of(row, "method"), *value, clock));
  }
  for (Series& series : plot.series) {
    if (series.x.empty()) continue;
    series.x.push_back(std::max(clock, series.x.back()));
    series.y.push_back(series.y.back());
    series.hints.emplace_back();
  }
  std::erase_if(plot.series, [](const Series& s) { return s.x.empty(); });
  plot.note = "Bounds at the time the method that found them ended.";
  return plot;
}

Plot bracket_by_method(const Json& methods) {
  Plot plot{.title = "Bounds by method",
            .x_label = "",
            .y_label = "constant",
            .log_y = true,
            .series = {{.name = "upper, proved", .kind = Series::Kind::kDots, .colour = 0},
                       {.name = "lower, proved", .kind = Series::Kind::kDots, .colour = 1},
                       {.name = "upper, not proved", .kind = Series::Kind::kDots, .colour = 3},
                       {.name = "lower, not proved", .kind = Series::Kind::kDots, .colour = 2}}};
  for (const Json& row : methods) {
    const auto value = number(row, "value");
    if (!value || !std::isfinite(*value) || *value <= 0) continue;
    const std::size_t side = text_of(row, "side") == "upper" ? 0 : 1;
    Series& series = plot.series[side + (text_of(row, "guarantee") == "proved" ? 0 : 2)];
    series.x.push_back(static_cast<double>(plot.names.size()));
    series.y.push_back(*value);
    series.hints.push_back(
        fmt::format("{}: {:.6g}, {}", text_of(row, "method"), *value, text_of(row, "guarantee")));
    plot.names.push_back(text_of(row, "method"));
  }
  std::erase_if(plot.series, [](const Series& s) { return s.x.empty(); });
  return plot;
}

Table method_table(const Json& methods) {
  Table table{.title = "Methods", .columns = {"method", "side", "bound", "seconds", "remark"}};
  for (const Json& row : methods) {
    const Side side = text_of(row, "side") == "lower" ? Side::kLower : Side::kUpper;
    const std::string skipped = text_of(row, "skipped");
    table.rows.push_back({{text_of(row, "method")},
                          {text_of(row, "side")},
                          number_cell(number(row, "value"), side, text_of(row, "guarantee")),
                          seconds_cell(number(row, "seconds")),
                          {skipped.empty() ? text_of(row, "note") : "skipped: " + skipped}});
  }
  std::ranges::stable_partition(table.rows, [](const auto& row) { return row[2].text != "–"; });
  return table;
}

Section radius_section(const Json& series) {
  Plot plot{.title = "Constant against radius",
            .x_label = "radius",
            .y_label = "constant",
            .log_x = true,
            .log_y = true,
            .series = {{.name = "upper bound, proved"}, {.name = "lower bound, proved"}}};
  Table table{.title = "By radius", .columns = {"radius", "lower", "upper"}};
  for (const Json& row : series) {
    const auto radius = number(row, "radius");
    for (const bool upper : {true, false}) {
      const Json& bound = member(row, upper ? "upper" : "lower");
      const auto value = number(bound, "value");
      if (text_of(bound, "guarantee") != "proved") continue;
      if (!radius || !value || !std::isfinite(*value)) continue;
      Series& line = plot.series[upper ? 0 : 1];
      line.x.push_back(*radius);
      line.y.push_back(*value);
      line.hints.push_back(fmt::format("radius {:g}: {:.6g}", *radius, *value));
    }
    table.rows.push_back({number_cell(radius), bound_cell(member(row, "lower"), Side::kLower),
                          bound_cell(member(row, "upper"), Side::kUpper)});
  }
  return {"Balls of growing radius", "", {std::move(plot), std::move(table)}};
}

Section margin_section(const Json& margins) {
  Table table{.title = "Pairs", .columns = {"class", "against", "lower", "upper"}};
  for (const Json& row : margins) {
    const Json& pair = member(row, "margin");
    if (!pair.is_array() || pair.size() != 2) continue;
    table.rows.push_back({number_cell(number(pair[0])), number_cell(number(pair[1])),
                          bound_cell(member(row, "lower"), Side::kLower),
                          bound_cell(member(row, "upper"), Side::kUpper)});
  }
  Section section{"Margins between classes", "Constants of the difference of two outputs.", {}};
  HeatMap map = margin_map(margins);
  if (!map.rows.empty()) section.blocks.emplace_back(std::move(map));
  section.blocks.emplace_back(std::move(table));
  return section;
}

}  // namespace

Report report_on_bound(const Json& document) {
  const Json& query = member(document, "query");
  Report report{
      .title = "Lipschitz bracket",
      .subtitle = fmt::format(
          "{}{} · {} · {}", text_of(member(document, "model"), "file"), function_of(query),
          norm_text(text_of(query, "norm_in") + ":" + text_of(query, "norm_out")),
          domain_of(query))};
  report.facts = {bound_fact("lower bound", member(document, "lower"), Side::kLower),
                  bound_fact("upper bound", member(document, "upper"), Side::kUpper),
                  {"ratio", number_cell(number(document, "ratio"), Side::kUpper).text},
                  {"outcome", text_of(document, "outcome")}};
  if (const std::string why = text_of(document, "no_bound"); !why.empty())
    report.note = "No finite upper bound: " + why + ".";
  const Json& series = member(document, "series");
  if (series.is_array() && !series.empty()) report.sections.push_back(radius_section(series));
  const Json& methods = member(document, "methods");
  if (methods.is_array() && !methods.empty()) {
    report.sections.push_back(
        {"How it was found",
         "",
         {bracket_over_time(methods), bracket_by_method(methods), method_table(methods)}});
  }
  const Json& margins = member(document, "margins");
  if (margins.is_array() && !margins.empty()) report.sections.push_back(margin_section(margins));
  return report;
}

Report report_on_inspect(const Json& document) {
  Report report{.title = "Model", .subtitle = text_of(member(document, "model"), "file")};
  if (const auto count = whole_number(document, "parameters"))
    report.facts.push_back({"parameters", group_digits(*count)});
  Table table{.title = "Nodes", .columns = {"node", "operator", "shape"}};
  std::vector<std::string> norms;
  Plot plot{.title = "Gain of each layer", .x_label = "", .y_label = "gain", .log_y = true};
  for (const Json& node : member(document, "nodes")) {
    for (const auto& [norm, gain] : member(node, "gain").items()) {
      if (std::ranges::find(norms, norm) != norms.end()) continue;
      norms.push_back(norm);
      table.columns.push_back("gain " + norm);
      plot.series.push_back({.name = norm_text(norm), .kind = Series::Kind::kDots});
    }
  }
  for (const Json& node : member(document, "nodes")) {
    const Json& shape = member(node, "shape");
    table.rows.push_back(
        {{text_of(node, "name")}, {text_of(node, "op")}, {shape.is_null() ? "?" : shape.dump()}});
    for (std::size_t k = 0; k < norms.size(); ++k) {
      const Json& gain = member(member(node, "gain"), norms[k].c_str());
      table.rows.back().push_back(bound_cell(gain, Side::kUpper));
      const auto value = number(gain, "value");
      if (!value || !(*value > 0) || !std::isfinite(*value)) continue;
      plot.series[k].x.push_back(static_cast<double>(plot.names.size()));
      plot.series[k].y.push_back(*value);
      plot.series[k].hints.push_back(
          fmt::format("{}: {:.6g} in {}", text_of(node, "name"), *value, norms[k]));
    }
    plot.names.push_back(text_of(node, "name"));
  }
  if (const std::string reason = text_of(document, "reason"); !reason.empty())
    report.note = "Not supported: " + reason + ".";
  Section section{"Layers", "Proved constants of each node as a function of its inputs.", {}};
  if (!norms.empty()) section.blocks.emplace_back(std::move(plot));
  section.blocks.emplace_back(std::move(table));
  report.sections.push_back(std::move(section));
  return report;
}

}  // namespace lipscope::app

// SPDX-License-Identifier: Apache-2.0
// Attention blocks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "report/reading.h"

namespace lipscope::app {
namespace {

Table bounds_of_heads(const Json& document) {
  Table table{.title = "Bounds of the heads",
              .columns = {"block", "head", "bound", "norm", "value", "theorem"}};
  for (const Json& block : member(document, "blocks")) {
    for (const Json& head : member(block, "heads")) {
      for (const Json& bound : member(head, "bounds")) {
        table.rows.push_back({{text_of(block, "node")},
                              number_cell(number(head, "head")),
                              {text_of(bound, "name")},
                              {text_of(bound, "norm")},
                              bound_cell(bound, Side::kUpper),
                              {text_of(bound, "theorem")}});
      }
    }
  }
  return table;
}

// A number of each head, by layer.
HeatMap head_map(const Json& document, const std::string& title,
                 const std::function<std::optional<double>(const Json& head)>& value) {
  HeatMap map{.title = title, .row_label = "layer", .column_label = "head"};
  std::size_t heads = 0;
  for (const Json& block : member(document, "blocks"))
    heads = std::max(heads, member(block, "heads").size());
  for (std::size_t h = 0; h < heads; ++h) map.columns.push_back(fmt::format("{}", h));
  for (const Json& block : member(document, "blocks")) {
    map.rows.push_back(number(block, "layer") ? fmt::format("{:g}", *number(block, "layer"))
                                              : text_of(block, "node"));
    const Json& list = member(block, "heads");
    for (std::size_t h = 0; h < heads; ++h)
      map.values.push_back(h < list.size() ? value(list[h]).value_or(std::nan("")) : std::nan(""));
  }
  return map;
}

Table head_table(const Json& document) {
  Table table{.title = "Heads",
              .columns = {"block", "head", "rows", "softmax max", "lower", "upper"}};
  for (const Json& block : member(document, "blocks")) {
    for (const Json& head : member(block, "heads")) {
      const Json& local = member(head, "local");
      table.rows.push_back({{text_of(block, "node")},
                            number_cell(number(head, "head")),
                            number_cell(number(head, "rows")),
                            number_cell(number(member(member(head, "softmax"), "2:2"), "max"),
                                        Side::kUpper, "proved"),
                            bound_cell(member(local, "lower"), Side::kLower),
                            bound_cell(member(local, "upper"), Side::kUpper)});
    }
  }
  return table;
}

Table block_table(const Json& document, bool ball) {
  Table table{.title = "Blocks", .columns = {"block", "layer", "kind", "lower", "upper"}};
  if (ball) table.columns.insert(table.columns.end(), {"lower on the ball", "upper on the ball"});
  for (const Json& block : member(document, "blocks")) {
    table.rows.push_back(
        {{text_of(block, "node")}, number_cell(number(block, "layer")), {text_of(block, "kind")}});
    for (const char* where : {"local", "ball"}) {
      if (!ball && where == std::string_view("ball")) continue;
      const Json& bounds = member(block, where);
      table.rows.back().push_back(bound_cell(member(bounds, "lower"), Side::kLower));
      table.rows.back().push_back(bound_cell(member(bounds, "upper"), Side::kUpper));
    }
  }
  return table;
}

}  // namespace

Report report_on_attention(const Json& document) {
  const Json& model = member(document, "model");
  Report report{.title = "Attention sensitivity", .subtitle = text_of(model, "file")};
  const auto radius = number(document, "radius");
  const bool ball = radius && member(model, "ball").is_object();
  report.facts = {
      bound_fact("whole model, lower", member(member(model, "local"), "lower"), Side::kLower),
      bound_fact("whole model, upper", member(member(model, "local"), "upper"), Side::kUpper)};
  if (ball) {
    report.subtitle += fmt::format(" · at the input and on its ball of radius {:g} in {}", *radius,
                                   norm_text(text_of(document, "ball_norm")));
    report.facts.push_back(
        bound_fact("on the ball, lower", member(member(model, "ball"), "lower"), Side::kLower));
    report.facts.push_back(
        bound_fact("on the ball, upper", member(member(model, "ball"), "upper"), Side::kUpper));
  }
  Section section{"Blocks and heads", "Local constants in ℓ2 at the input.", {}};
  section.blocks.emplace_back(head_map(
      document, "Upper bound of each head, proved",
      [](const Json& head) { return number(member(member(head, "local"), "upper"), "value"); }));
  section.blocks.emplace_back(head_map(
      document, "Steepest softmax row of each head, proved",
      [](const Json& head) { return number(member(member(head, "softmax"), "2:2"), "max"); }));
  section.blocks.emplace_back(block_table(document, ball));
  section.blocks.emplace_back(head_table(document));
  report.sections.push_back(std::move(section));
  Table bounds = bounds_of_heads(document);
  if (!bounds.rows.empty())
    report.sections.push_back({"Bounds compared",
                               "What each theorem gives for a head; the smallest is the best.",
                               {std::move(bounds)}});
  return report;
}

}  // namespace lipscope::app

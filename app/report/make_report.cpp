// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "report/form.h"
#include "report/reading.h"

namespace lipscope::app {
namespace {

constexpr std::size_t kMostRowsShown = 1000;

bool is_bound(const Json& value) {
  return value.is_object() && value.contains("value") && value.contains("guarantee");
}

Cell any_cell(const std::string& key, const Json& value) {
  if (is_bound(value))
    return bound_cell(value, key.ends_with("lower") ? Side::kLower : Side::kUpper);
  if (const auto x = number(value)) return number_cell(x);
  if (value.is_string()) return {value.get<std::string>()};
  if (value.is_null()) return {"–"};
  std::string text = value.dump();
  constexpr std::size_t kLong = 80;
  if (text.size() > kLong) text = text.substr(0, kLong) + " …";
  return {text};
}

// A list of objects: one column per member of the first.
Table table_of(const std::string& title, const Json& list) {
  Table table{.title = title, .columns = {}};
  for (const auto& [key, value] : list[0].items()) table.columns.push_back(key);
  for (const Json& row : list) {
    if (table.rows.size() >= kMostRowsShown) {
      table.note = fmt::format("The first {} of {}.", kMostRowsShown, list.size());
      break;
    }
    table.rows.emplace_back();
    for (const std::string& key : table.columns)
      table.rows.back().push_back(any_cell(key, member(row, key.c_str())));
  }
  return table;
}

}  // namespace

Report report_on_anything(const Json& document) {
  const std::string schema = text_of(document, "schema");
  Report report{.title = schema.substr(9, schema.find('/') - 9), .subtitle = "Lipscope result"};
  if (!report.title.empty() && report.title[0] >= 'a' && report.title[0] <= 'z')
    report.title[0] = static_cast<char>(report.title[0] - 'a' + 'A');
  Table values{.title = "Values", .columns = {"name", "value"}};
  Section section{"Result", "", {}};
  for (const auto& [key, value] : document.items()) {
    if (key == "schema") continue;
    if (value.is_array() && !value.empty() && value[0].is_object()) {
      section.blocks.emplace_back(table_of(key, value));
    } else if (value.is_array() && !value.empty() && number(value[0])) {
      Plot plot{.title = key,
                .x_label = "entry",
                .y_label = key,
                .series = {{.name = key, .kind = Series::Kind::kDots}}};
      for (std::size_t i = 0; i < value.size() && i < kMostRowsShown; ++i) {
        plot.series[0].x.push_back(static_cast<double>(i));
        plot.series[0].y.push_back(number(value[i]).value_or(0));
      }
      section.blocks.emplace_back(std::move(plot));
    } else if (value.is_object() && !is_bound(value)) {
      for (const auto& [inner, entry] : value.items())
        values.rows.push_back({{key + " " + inner}, any_cell(inner, entry)});
    } else {
      values.rows.push_back({{key}, any_cell(key, value)});
    }
  }
  section.blocks.insert(section.blocks.begin(), std::move(values));
  report.sections.push_back(std::move(section));
  return report;
}

Report make_report(const Json& document, std::string_view file) {
  check_result_form(JsonValue(document, file));
  const std::string schema = text_of(document, "schema");
  if (schema == "lipscope.bound/1") return report_on_bound(document);
  if (schema == "lipscope.certify/1") return report_on_certify(document);
  if (schema == "lipscope.softmax/1") return report_on_softmax(document);
  if (schema == "lipscope.game/1") return report_on_game(document);
  if (schema == "lipscope.attention/1") return report_on_attention(document);
  if (schema == "lipscope.inspect/1") return report_on_inspect(document);
  return report_on_anything(document);
}

}  // namespace lipscope::app

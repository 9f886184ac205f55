// SPDX-License-Identifier: Apache-2.0
#include "report/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rounding.h"

namespace lipscope::app {

std::optional<double> number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "inf") return kInf;
  if (value == "-inf") return -kInf;
  return std::nullopt;
}

const Json& member(const Json& object, const char* key) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::optional<double> number(const Json& object, const char* key) {
  return number(member(object, key));
}

std::optional<Index> whole_number(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_number_integer() ? std::optional(value.get<Index>()) : std::nullopt;
}

std::string text_of(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

std::string rounded(double value, Side side) {
  constexpr int kDigits = 6;
  if (side == Side::kLower) return format_down(value, kDigits);
  if (side == Side::kUpper) return format_up(value, kDigits);
  return fmt::format("{:.6g}", value);
}

Cell number_cell(std::optional<double> value, Side side, const std::string& badge) {
  if (!value) return {"–", "", std::nullopt};
  return {rounded(*value, side), badge, *value};
}

Cell bound_cell(const Json& bound, Side side) {
  return number_cell(number(bound, "value"), side, text_of(bound, "guarantee"));
}

Fact bound_fact(const std::string& label, const Json& bound, Side side) {
  const Cell cell = bound_cell(bound, side);
  return {label, cell.text, cell.badge};
}

Cell seconds_cell(std::optional<double> seconds) {
  if (!seconds) return {"–", "", std::nullopt};
  return {fmt::format("{:.3f}", *seconds), "", *seconds};
}

std::string norm_text(const std::string& norm) {
  const auto one = [](const std::string& p) { return "ℓ" + (p == "inf" ? std::string("∞") : p); };
  const std::size_t colon = norm.find(':');
  if (colon == std::string::npos) return one(norm);
  return one(norm.substr(0, colon)) + " → " + one(norm.substr(colon + 1));
}

std::string percent_text(double share) { return fmt::format("{:.2f} %", 100 * share); }

HeatMap margin_map(const Json& margins) {
  HeatMap map{.title = "Upper bounds of the margins between classes, proved",
              .row_label = "class",
              .column_label = "against"};
  std::size_t classes = 0;
  for (const Json& row : margins) {
    const Json& pair = member(row, "margin");
    if (pair.is_array() && pair.size() == 2)
      classes = std::max(classes, pair[1].get<std::size_t>() + 1);
  }
  if (classes > 40) classes = 0;
  map.values.assign(classes * classes, std::nan(""));
  for (std::size_t c = 0; c < classes; ++c) map.rows.push_back(fmt::format("{}", c));
  map.columns = map.rows;
  for (const Json& row : margins) {
    const Json& pair = member(row, "margin");
    const auto value = number(member(row, "upper"), "value");
    if (!pair.is_array() || pair.size() != 2 || !value) continue;
    const auto i = pair[0].get<std::size_t>(), j = pair[1].get<std::size_t>();
    if (i < classes && j < classes)
      map.values[i * classes + j] = map.values[j * classes + i] = *value;
  }
  return map;
}

}  // namespace lipscope::app

// SPDX-License-Identifier: Apache-2.0
// Reports without a page: Markdown, CSV, and the plots alone.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "base/printable.h"
#include "report/report.h"
#include "report/svg.h"

namespace lipscope::app {
namespace {

std::string with_badge(const std::string& text, const std::string& badge) {
  return badge.empty() ? text : text + " (" + badge + ")";
}

// Names out of files may hold anything, the marks of this language among it.
std::string in_markdown(std::string_view name) {
  constexpr std::string_view kMarks = "\\`*[]<>|~&", kAtStart = "#-+=";
  const std::string text = one_line(name, std::string::npos);
  const auto in_word = [&](std::size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool mark = kMarks.find(text[i]) != std::string_view::npos ||
                      (i == 0 && kAtStart.find(text[i]) != std::string_view::npos &&
                       !in_word(1)) ||  // numbers have signs
                      (text[i] == '_' && !(i > 0 && in_word(i - 1) && in_word(i + 1)));
    if (mark) result += '\\';
    result += text[i];
  }
  return result;
}

std::string quoted(const std::string& name) {
  const std::string text = one_line(name, std::string::npos);
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

// The entry in full, not as it is shown.
std::string full_number(const Cell& cell) {
  return cell.sort ? fmt::format("{}", *cell.sort) : cell.text == "–" ? "" : cell.text;
}

// What a plot shows, as a table.
Table numbers_of(const Plot& plot) {
  Table table{.title = plot.title,
              .columns = {"series", plot.x_label.empty() ? "at" : plot.x_label, plot.y_label}};
  for (const Series& series : plot.series) {
    for (std::size_t i = 0; i < series.y.size(); ++i) {
      const auto named = [&] {
        const bool bars = series.kind == Series::Kind::kBars;
        return plot.names.at(bars ? i : static_cast<std::size_t>(series.x[i]));
      };
      table.rows.push_back({{series.name},
                            plot.names.empty()
                                ? Cell{fmt::format("{}", series.x[i]), "", series.x[i]}
                                : Cell{named()},
                            {fmt::format("{}", series.y[i]), "", series.y[i]}});
    }
  }
  return table;
}

Table numbers_of(const HeatMap& map) {
  Table table{.title = map.title, .columns = {map.row_label, map.column_label, "value"}};
  for (std::size_t i = 0; i < map.rows.size(); ++i) {
    for (std::size_t j = 0; j < map.columns.size(); ++j) {
      const double value = map.values[i * map.columns.size() + j];
      if (std::isfinite(value))
        table.rows.push_back(
            {{map.rows[i]}, {map.columns[j]}, {fmt::format("{}", value), "", value}});
    }
  }
  return table;
}

std::string csv_of(const Table& table) {
  std::string text = "# " + one_line(table.title) + "\n";
  bool badges = false;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    text += (c > 0 ? "," : "") + quoted(table.columns[c]);
  for (const auto& row : table.rows) {
    for (const Cell& cell : row) badges = badges || !cell.badge.empty();
  }
  text += badges ? ",guarantee\n" : "\n";
  for (const auto& row : table.rows) {
    std::string badge;
    for (std::size_t c = 0; c < row.size(); ++c) {
      text += (c > 0 ? "," : "") + quoted(full_number(row[c]));
      if (!row[c].badge.empty()) badge = row[c].badge;
    }
    text += badges ? "," + badge + "\n" : "\n";
  }
  return text + "\n";
}

// The colours of the series, side by side.
std::string key_of(const Plot& plot, double y) {
  std::string text;
  double x = 24;
  for (std::size_t k = 0; k < plot.series.size(); ++k) {
    const std::string& name = plot.series[k].name;
    text += fmt::format(
        R"(<circle class="dot s{}" cx="{:.0f}" cy="{:.0f}" r="5"/><text x="{:.0f}" y="{:.0f}">{}</text>)",
        colour_of(plot, k), x + 5, y - 4, x + 16, y, escaped(name));
    x += 40 + 6.6 * static_cast<double>(name.size());
  }
  return text;
}

}  // namespace

std::string to_markdown(const Report& report) {
  std::string text =
      fmt::format("# {}\n\n{}\n\n", in_markdown(report.title), in_markdown(report.subtitle));
  for (const Fact& fact : report.facts)
    text += fmt::format("- {}: **{}**\n", in_markdown(fact.label),
                        in_markdown(with_badge(fact.value, fact.badge)));
  if (!report.note.empty()) text += "\n" + in_markdown(report.note) + "\n";
  for (const Section& section : report.sections) {
    text += fmt::format("\n## {}\n\n", in_markdown(section.title));
    if (!section.note.empty()) text += in_markdown(section.note) + "\n\n";
    for (const Block& block : section.blocks) {
      const Table* table = std::get_if<Table>(&block);
      if (table == nullptr) continue;
      text += fmt::format("### {}\n\n|", in_markdown(table->title));
      for (const std::string& column : table->columns)
        text += fmt::format(" {} |", in_markdown(column));
      text += "\n|";
      for (std::size_t c = 0; c < table->columns.size(); ++c) text += " --- |";
      text += "\n";
      for (const auto& row : table->rows) {
        text += "|";
        for (const Cell& cell : row)
          text += fmt::format(" {} |", in_markdown(with_badge(cell.text, cell.badge)));
        text += "\n";
      }
      text += table->note.empty() ? "\n" : "\n" + in_markdown(table->note) + "\n\n";
    }
  }
  return text;
}

std::string to_csv(const Report& report) {
  std::string text;
  for (const Section& section : report.sections) {
    for (const Block& block : section.blocks) {
      if (const auto* table = std::get_if<Table>(&block)) text += csv_of(*table);
      if (const auto* plot = std::get_if<Plot>(&block)) text += csv_of(numbers_of(*plot));
      if (const auto* map = std::get_if<HeatMap>(&block)) text += csv_of(numbers_of(*map));
    }
  }
  return text;
}

std::string to_svg(const Report& report) {
  constexpr double kWidth = 680, kMost = 640;
  std::string inner;
  double y = 10;
  for (const Section& section : report.sections) {
    for (const Block& block : section.blocks) {
      std::string drawn, title, key;
      if (const auto* plot = std::get_if<Plot>(&block)) {
        drawn = draw(*plot), title = plot->title;
        if (has_key(*plot)) key = key_of(*plot, y + 42);
      }
      if (const auto* map = std::get_if<HeatMap>(&block)) drawn = draw(*map), title = map->title;
      if (drawn.empty()) continue;
      // As large as it was drawn, if there is room.
      const std::string_view view = R"(viewBox="0 0 )";
      const char* numbers = drawn.c_str() + drawn.find(view) + view.size();
      char* rest = nullptr;
      const double width = std::strtod(numbers, &rest), height = std::strtod(rest, nullptr);
      const double shown = std::min(width, kMost), tall = height * shown / width;
      const double top = y + (key.empty() ? 32 : 52);
      drawn.insert(
          4, fmt::format(R"( x="20" y="{:.0f}" width="{:.0f}" height="{:.0f}")", top, shown, tall));
      inner += fmt::format(
          R"(<text class="label" x="24" y="{:.0f}" style="font-size:15px;font-weight:600">{}</text>{}{})",
          y + 20, escaped(title), key, drawn);
      y = top + tall + 24;
    }
  }
  return fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" width="{}" height="{}"><style>{}</style><rect width="100%" height="100%" fill="#fff"/>{}</svg>)"
      "\n",
      kWidth, std::ceil(y), kWidth, std::ceil(y), svg_style(), inner);
}

}  // namespace lipscope::app

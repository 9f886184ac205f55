// SPDX-License-Identifier: Apache-2.0
// A result as something to look at: facts, tables, plots. Made from a result document alone;
// rendered as HTML, Markdown, CSV or SVG.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "lipscope/tensor.h"

namespace lipscope::app {

struct Cell {
  std::string text;
  std::string badge = {};           // what guarantees it: "proved", "real", "estimate"
  std::optional<double> sort = {};  // sorted by this, else by the text
};

struct Table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
  std::string note = {};
  std::string id = {};  // rows are named <id>-<first cell>
};

struct Series {
  enum class Kind { kLine, kStep, kBars, kDots };
  std::string name;
  Kind kind = Kind::kLine;
  std::vector<double> x, y;  // bars: x are the left edges, one more than there are bars
  std::vector<std::string> hints = {};
  std::optional<std::size_t> colour = {};  // its place among the series unless given
};

// A horizontal line with a name.
struct Rule {
  double y = 0;
  std::string label;
};

struct Plot {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;  // where the range is wide; else y need not start at 0
  std::vector<Series> series;
  std::vector<Rule> rules = {};
  std::vector<std::string> names = {};  // of the places 0, 1, ... on the x axis, instead of numbers
  std::string note = {};
};

struct HeatMap {
  std::string title, row_label, column_label;
  std::vector<std::string> rows, columns;
  std::vector<double> values;  // row by row; NaN: nothing there
};

struct Picture {
  std::vector<unsigned char> png;
  std::string caption, target;  // id of the row to go to
};
struct Gallery {
  std::string title;
  std::vector<Picture> pictures;
};

using Block = std::variant<Table, Plot, HeatMap, Gallery>;

struct Section {
  std::string title, note;
  std::vector<Block> blocks;
};

struct Fact {
  std::string label, value, badge = {};
};

struct Report {
  std::string title, subtitle;
  std::vector<Fact> facts;
  std::vector<Section> sections;
  std::string note = {};  // below the facts
};

// Throws kBadFile, naming the file and the field, for a document that this program cannot have
// written.
[[nodiscard]] Report make_report(const Json& document, std::string_view file);

[[nodiscard]] std::string to_html(const Report& report);
[[nodiscard]] std::string to_markdown(const Report& report);
[[nodiscard]] std::string to_csv(const Report& report);
// All plots below each other.
[[nodiscard]] std::string to_svg(const Report& report);

}  // namespace lipscope::app

// SPDX-License-Identifier: Apache-2.0
#include "terminal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/printable.h"

namespace lipscope::app {

std::string format_table(std::vector<std::vector<std::string>> rows) {
  std::vector<std::size_t> widths;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = one_line(cell);
  }
  for (const auto& row : rows) widths.resize(std::max(widths.size(), row.size()));
  for (const auto& row : rows) {
    // Where a row ends early, its last cell may be as long as it likes.
    const std::size_t cells =
        row.size() < widths.size() && !row.empty() ? row.size() - 1 : row.size();
    for (std::size_t i = 0; i < cells; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("  {:<{}}", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string group_digits(Index value) {
  std::string text = fmt::format("{}", value);
  for (Index at = static_cast<Index>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), " ");
  return text;
}

std::string format_dims(const Shape& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

std::string nearest(std::string_view word, const std::vector<std::string>& words) {
  std::string best;
  std::size_t best_distance = word.size() / 2 + 1;  // half the letters may be wrong
  for (const std::string& candidate : words) {
    std::vector<std::size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < word.size(); ++i) {
      std::size_t diagonal = row[0]++;
      for (std::size_t j = 0; j < candidate.size(); ++j) {
        const std::size_t swap = diagonal + (word[i] == candidate[j] ? 0 : 1);
        diagonal = row[j + 1];
        row[j + 1] = std::min({row[j + 1] + 1, row[j] + 1, swap});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace lipscope::app

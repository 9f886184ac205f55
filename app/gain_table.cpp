// SPDX-License-Identifier: Apache-2.0
#include "gain_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "base/rounding.h"
#include "terminal.h"

namespace lipscope::app {
namespace {

constexpr std::size_t kGainWidth = 10;
constexpr int kGainDigits = 5;

std::string gain_text(const NodeGain& gain) {
  if (gain.state == NodeGain::State::kOpen) return "...";
  const bool loose = gain.state == NodeGain::State::kLoose;
  return (loose ? "<" : "") + format_up(gain.value, kGainDigits);
}

}  // namespace

GainTable::GainTable(const Graph& graph, const NodeGains& gains)
    : graph_(graph), gains_(gains), widths_{4, 8, 6} {
  for (const Node& node : graph.nodes()) {
    widths_[0] = std::max(widths_[0], one_line(node.name).size());
    widths_[1] = std::max(widths_[1], one_line(node.op->name()).size());
    widths_[2] = std::max(widths_[2], format_dims(graph.value(node.outputs[0]).type.shape).size());
  }
  widths_.resize(widths_.size() + gains.norms().size(), kGainWidth);
}

std::string GainTable::aligned(std::vector<std::string> cells) const {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i)
    line += fmt::format("  {:<{}}", cells[i], widths_[i]);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string GainTable::heading() const {
  std::vector<std::string> cells{"node", "operator", "output"};
  for (const NormPair& norms : gains_.norms())
    cells.push_back((cells.size() == 3 ? "gain l" : "l") + norms.in.name());
  return aligned(std::move(cells));
}

std::string GainTable::line(std::size_t n) const {
  const Node& node = graph_.nodes()[n];
  std::vector<std::string> cells{one_line(node.name), one_line(node.op->name()),
                                 format_dims(graph_.value(node.outputs[0]).type.shape)};
  for (std::size_t j = 0; j < gains_.norms().size(); ++j)
    cells.push_back(gain_text(gains_.at(n, j)));
  return aligned(std::move(cells));
}

std::string GainTable::legend() const {
  bool open = false, loose = false;
  for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
    for (std::size_t j = 0; j < gains_.norms().size(); ++j) {
      open = open || gains_.at(n, j).state == NodeGain::State::kOpen;
      loose = loose || gains_.at(n, j).state == NodeGain::State::kLoose;
    }
  }
  std::string text;
  if (loose) text += "\nGains with < are proved; more time may prove smaller ones (--time).\n";
  if (open) text += "\nGains ... were not found in time (--time).\n";
  return text;
}

}  // namespace lipscope::app

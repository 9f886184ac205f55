// SPDX-License-Identifier: Apache-2.0
// The nodes of a graph and their gains as lines of text, which can be written before all are known.
#pragma once

#include <string>
#include <vector>

#include "lipscope/gains.h"

namespace lipscope::app {

class GainTable {
 public:
  // Borrows both.
  GainTable(const Graph& graph, const NodeGains& gains);

  [[nodiscard]] std::string heading() const;
  // A gain that is not known yet is "...", one that more time may lower starts with "<".
  [[nodiscard]] std::string line(std::size_t node) const;
  // What the signs mean, when there are some.
  [[nodiscard]] std::string legend() const;

 private:
  [[nodiscard]] std::string aligned(std::vector<std::string> cells) const;

  const Graph& graph_;
  const NodeGains& gains_;
  std::vector<std::size_t> widths_;
};

}  // namespace lipscope::app

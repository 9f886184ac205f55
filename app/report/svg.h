// SPDX-License-Identifier: Apache-2.0
// Plots as SVG elements. Colours are CSS classes of the page: s0, s1, ... for series.
#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace lipscope::app {

// &, <, > and quotes as entities.
[[nodiscard]] std::string escaped(const std::string& text);

// About `count` round numbers that cover [low, high], which they may leave; powers of ten and parts
// of them on a logarithmic axis.
[[nodiscard]] std::vector<double> axis_ticks(double low, double high, bool logarithmic, int count);

// Of the class s0, s1, ... of a series; and whether the series need to be told apart.
[[nodiscard]] std::size_t colour_of(const Plot& plot, std::size_t series);
[[nodiscard]] bool has_key(const Plot& plot);

[[nodiscard]] std::string draw(const Plot& plot);
[[nodiscard]] std::string draw(const HeatMap& map);

// Colours of the classes, for a document of its own.
[[nodiscard]] std::string svg_style();

}  // namespace lipscope::app

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

[[nodiscard]] std::string draw(const Plot& plot);
[[nodiscard]] std::string draw(const HeatMap& map);

// Colours of the classes, for a document of its own.
[[nodiscard]] std::string svg_style();

}  // namespace lipscope::app

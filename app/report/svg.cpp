// SPDX-License-Identifier: Apache-2.0
#include "report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/rounding.h"

namespace lipscope::app {
namespace {

constexpr double kWidth = 640, kHeight = 320, kLeft = 66, kRight = 16, kTop = 14, kBottom = 46;
constexpr std::size_t kColours = 4;

std::string short_number(double value) {
  if (value == 0) return "0";
  const double size = std::fabs(value);
  if (size >= 1e5 || size < 1e-4) {
    const int power = static_cast<int>(std::floor(std::log10(size) + 1e-9));
    const double lead = value / std::pow(10.0, power);
    return std::fabs(lead - 1) < 1e-9 ? fmt::format("1e{}", power)
                                      : fmt::format("{:.3g}e{}", lead, power);
  }
  return fmt::format("{:.6g}", value);
}

struct Axis {
  double low = 0, high = 1, from = 0, to = 1;
  bool logarithmic = false;

  [[nodiscard]] double place(double value) const {
    const auto scaled = [&](double x) { return logarithmic ? std::log10(x) : x; };
    const double part = (scaled(value) - scaled(low)) / (scaled(high) - scaled(low));
    return from + part * (to - from);
  }
};

// A range with room around it.
Axis make_axis(double low, double high, bool logarithmic, bool from_zero, double from, double to) {
  Axis axis{low, high, from, to, logarithmic};
  if (!(low <= high)) axis.low = 0, axis.high = 1, axis.logarithmic = false;
  if (axis.logarithmic) {
    const double room = std::max(1.05, std::pow(axis.high / axis.low, 0.06));
    axis.low /= room;
    axis.high *= room;
    return axis;
  }
  if (from_zero && axis.low >= 0) axis.low = 0;
  if (!from_zero && axis.low > 0)
    axis.low = std::max(0.0, axis.low - 0.15 * (axis.high - axis.low));
  if (axis.high == axis.low) axis.high = axis.low + (axis.low == 0 ? 1 : std::fabs(axis.low));
  axis.high += 0.04 * (axis.high - axis.low);
  return axis;
}

struct Limits {
  double low = INFINITY, high = -INFINITY;
  bool positive = true;
  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
    positive = positive && value > 0;
  }
};

class Canvas {
 public:
  explicit Canvas(const Plot& plot) : plot_(plot) {
    Limits x, y;
    bool bars = false;
    for (const Series& series : plot.series) {
      for (const double value : series.x) x.add(value);
      for (const double value : series.y) y.add(value);
      bars = bars || series.kind == Series::Kind::kBars;
    }
    for (const Rule& rule : plot.rules) y.add(rule.y);
    if (!plot.names.empty()) x.add(-0.5), x.add(static_cast<double>(plot.names.size()) - 0.5);
    const bool log_y = plot.log_y && y.positive && y.high > 3 * y.low;
    for (const std::string& name : plot.names) slanted_ = slanted_ || name.size() > 3;
    bottom_ = slanted_ ? 96 : kBottom;
    x_ = make_axis(x.low, x.high, plot.log_x && x.positive && x.high > x.low, plot.names.empty(),
                   kLeft, kWidth - kRight);
    if (!plot.names.empty())
      x_ = {-0.5, static_cast<double>(plot.names.size()) - 0.5, kLeft, kWidth - kRight, false};
    const bool narrow = plot.log_y && y.positive && y.high > y.low && !bars;
    y_ = make_axis(y.low, y.high, log_y, !narrow, height() - bottom_, kTop);
    apart_ = plot.names.empty() || bars ? 0 : places_shared() ? 0.14 : 0;
  }

  std::string draw() {
    text_ = fmt::format(
        R"(<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>)",
        kWidth, height(), escaped(plot_.title), escaped(plot_.title));
    axes();
    for (std::size_t k = 0; k < plot_.series.size(); ++k) series(plot_.series[k], k);
    for (const Rule& rule : plot_.rules) draw_rule(rule);
    return text_ + "</svg>";
  }

 private:
  [[nodiscard]] double height() const { return kHeight + bottom_ - kBottom; }

  // Whether dots of two series would lie on each other.
  [[nodiscard]] bool places_shared() const {
    std::vector<double> all;
    for (const Series& series : plot_.series)
      all.insert(all.end(), series.x.begin(), series.x.end());
    std::ranges::sort(all);
    return std::ranges::adjacent_find(all) != all.end();
  }

  void axes() {
    for (const double tick : axis_ticks(y_.low, y_.high, y_.logarithmic, 5)) {
      if (tick < y_.low || tick > y_.high) continue;
      const double at = y_.place(tick);
      text_ += fmt::format(
          R"(<line class="grid" x1="{}" y1="{:.1f}" x2="{}" y2="{:.1f}"/><text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>)",
          kLeft, at, kWidth - kRight, at, kLeft - 8, at + 4, short_number(tick));
    }
    const double base = height() - bottom_;
    text_ += fmt::format(R"(<line class="axis" x1="{}" y1="{}" x2="{}" y2="{}"/>)", kLeft, base,
                         kWidth - kRight, base);
    if (plot_.names.empty()) {
      for (const double tick : axis_ticks(x_.low, x_.high, x_.logarithmic, 7)) {
        if (tick < x_.low || tick > x_.high) continue;
        text_ +=
            fmt::format(R"(<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>)",
                        x_.place(tick), base + 18, short_number(tick));
      }
    } else {
      for (std::size_t k = 0; k < plot_.names.size(); ++k) {
        const double at = x_.place(static_cast<double>(k));
        if (!slanted_) {
          text_ +=
              fmt::format(R"(<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>)",
                          at, base + 18, escaped(plot_.names[k]));
          continue;
        }
        text_ += fmt::format(
            R"x(<text class="tick" x="{:.1f}" y="{}" text-anchor="end" transform="rotate(-35 {:.1f} {})">{}</text>)x",
            at + 4, base + 16, at + 4, base + 16, escaped(plot_.names[k]));
      }
    }
    text_ += fmt::format(
        R"x(<text class="label" x="{}" y="{}" text-anchor="middle">{}</text><text class="label" transform="translate(14 {}) rotate(-90)" text-anchor="middle">{}</text>)x",
        0.5 * (kLeft + kWidth - kRight), height() - 6, escaped(plot_.x_label), 0.5 * (kTop + base),
        escaped(plot_.y_label));
  }

  static std::string hint_of(const Series& series, std::size_t i) {
    if (i >= series.hints.size() || series.hints[i].empty()) return "";
    return "<title>" + escaped(series.hints[i]) + "</title>";
  }

  void series(const Series& series, std::size_t number) {
    const std::size_t colour = colour_of(plot_, number);
    const double shift =
        apart_ * (static_cast<double>(number) - 0.5 * static_cast<double>(plot_.series.size() - 1));
    if (series.kind == Series::Kind::kBars) return bars(series, colour);
    if (series.kind != Series::Kind::kDots) {
      std::string path;
      for (std::size_t i = 0; i < series.y.size(); ++i) {
        const double x = x_.place(series.x[i]), y = y_.place(series.y[i]);
        if (i == 0) {
          path += fmt::format("M{:.1f} {:.1f}", x, y);
        } else if (series.kind == Series::Kind::kStep) {
          path += fmt::format("H{:.1f}V{:.1f}", x, y);
        } else {
          path += fmt::format("L{:.1f} {:.1f}", x, y);
        }
      }
      text_ += fmt::format(R"(<path class="line s{}" d="{}"/>)", colour, path);
    }
    const bool few = series.kind == Series::Kind::kDots ||
                     series.y.size() <= (series.kind == Series::Kind::kStep ? 12U : 40U);
    for (std::size_t i = 0; i < series.y.size(); ++i) {
      const std::string hint = hint_of(series, i);
      if (!few && hint.empty()) continue;
      if (hint.empty() && series.kind == Series::Kind::kStep) continue;
      text_ += fmt::format(R"(<circle class="{} s{}" cx="{:.1f}" cy="{:.1f}" r="{}">{}</circle>)",
                           few ? "dot" : "touch", colour, x_.place(series.x[i] + shift),
                           y_.place(series.y[i]), few ? 3.5 : 4, hint);
    }
  }

  void bars(const Series& series, std::size_t colour) {
    const double base = y_.place(y_.logarithmic ? y_.low : 0);
    for (std::size_t i = 0; i < series.y.size() && i + 1 < series.x.size(); ++i) {
      if (series.y[i] == 0) continue;
      const double left = x_.place(series.x[i]), right = x_.place(series.x[i + 1]);
      const double top = y_.place(series.y[i]);
      text_ += fmt::format(
          R"(<rect class="bar s{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">{}</rect>)",
          colour, left + 0.5, top, std::max(0.5, right - left - 1), std::max(0.0, base - top),
          hint_of(series, i));
    }
  }

  void draw_rule(const Rule& rule) {
    const double at = y_.place(rule.y);
    text_ += fmt::format(
        R"(<line class="rule" x1="{}" y1="{:.1f}" x2="{}" y2="{:.1f}"/><text class="rule-label" x="{}" y="{:.1f}" text-anchor="end">{}</text>)",
        kLeft, at, kWidth - kRight, at, kWidth - kRight - 4, at - 5, escaped(rule.label));
  }

  const Plot& plot_;
  Axis x_, y_;
  double bottom_ = kBottom;
  bool slanted_ = false;  // names on the x axis
  double apart_ = 0;      // dots of different series at the same place
  std::string text_;
};

}  // namespace

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += c;
    }
  }
  return result;
}

std::vector<double> axis_ticks(double low, double high, bool logarithmic, int count) {
  std::vector<double> ticks;
  if (!(high > low)) return {low};
  if (logarithmic) {
    const int first = static_cast<int>(std::floor(std::log10(low)));
    const int last = static_cast<int>(std::ceil(std::log10(high)));
    const int every = std::max(1, (last - first) / count);
    for (int power = first; power <= last; power += every) {
      for (const double lead : {1.0, 2.0, 5.0}) {
        if (lead == 1 || last - first <= 2) ticks.push_back(lead * std::pow(10.0, power));
      }
    }
    return ticks;
  }
  const double raw = (high - low) / count, power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double lead : {1.0, 2.0, 5.0}) {
    if (lead * power >= raw) {
      step = lead * power;
      break;
    }
  }
  // Far from zero, steps may be too small to get anywhere.
  const double first = std::ceil(low / step);
  for (int k = 0; k <= 10 * count && (first + k) * step <= high + 1e-9 * step; ++k) {
    const double tick = (first + k) * step;
    if (ticks.empty() || tick > ticks.back()) ticks.push_back(tick);
  }
  return ticks;
}

std::size_t colour_of(const Plot& plot, std::size_t series) {
  return plot.series[series].colour.value_or(series) % kColours;
}

bool has_key(const Plot& plot) {
  return plot.series.size() > 1 || (plot.series.size() == 1 && plot.series[0].colour);
}

std::string draw(const Plot& plot) { return Canvas(plot).draw(); }

namespace {

// An upper bound in at most six characters, which is what a cell has room for.
std::string cell_number(double value) {
  const std::string text = format_up(value, 3);
  if (text.size() <= 6 || value == 0) return text;
  const int exponent = static_cast<int>(std::floor(std::log10(std::fabs(value))));
  return fmt::format("{}e{}", format_up(next_up(value / std::pow(10.0, exponent)), 2), exponent);
}

}  // namespace

std::string draw(const HeatMap& map) {
  const double cell = std::clamp(
      520.0 / static_cast<double>(std::max<std::size_t>(1, map.columns.size())), 14.0, 46.0);
  const double left = 60, top = 34;
  const double width = left + cell * static_cast<double>(map.columns.size()) + 16;
  const double height = top + cell * static_cast<double>(map.rows.size()) + 12;
  double low = INFINITY, high = -INFINITY;
  for (const double value : map.values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  std::string text = fmt::format(
      R"(<svg class="heat" viewBox="0 0 {:.0f} {:.0f}" style="max-width:{:.0f}px" role="img" aria-label="{}"><title>{}</title>)",
      width, height, width, escaped(map.title), escaped(map.title));
  for (std::size_t j = 0; j < map.columns.size(); ++j) {
    text +=
        fmt::format(R"(<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>)",
                    left + (static_cast<double>(j) + 0.5) * cell, top - 7, escaped(map.columns[j]));
  }
  text += fmt::format(R"(<text class="label" x="{}" y="12">{} ↓  {} →</text>)", 4,
                      escaped(map.row_label), escaped(map.column_label));
  for (std::size_t i = 0; i < map.rows.size(); ++i) {
    const double y = top + static_cast<double>(i) * cell;
    text += fmt::format(R"(<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>)",
                        left - 8, y + 0.5 * cell + 4, escaped(map.rows[i]));
    for (std::size_t j = 0; j < map.columns.size(); ++j) {
      const double value = map.values[i * map.columns.size() + j];
      if (!std::isfinite(value)) continue;
      const double part = high > low ? (value - low) / (high - low) : 0.5;
      const double x = left + static_cast<double>(j) * cell;
      text += fmt::format(
          R"(<rect class="cell" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill-opacity="{:.3f}"><title>{} {}, {} {}: {}</title></rect>)",
          x + 1, y + 1, cell - 2, cell - 2, 0.1 + 0.9 * part, escaped(map.row_label),
          escaped(map.rows[i]), escaped(map.column_label), escaped(map.columns[j]),
          format_up(value, 6));
      if (cell >= 36) {
        text += fmt::format(
            R"(<text class="cell-text" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)",
            x + 0.5 * cell, y + 0.5 * cell + 4, cell_number(value));
      }
    }
  }
  return text + "</svg>";
}

std::string svg_style() {
  return ":root{--ink:#1c2330;--soft:#5b6472;--line:#d9dde3;--s0:#2f6db5;--s1:#c2622d;--s2:#4b8f5c;"
         "--s3:#8a5fa8;--heat:#6491c8;--paper:#fff}"
         "text{font:12px system-ui,sans-serif;fill:var(--soft)}.label{fill:var(--ink)}"
         ".grid{stroke:var(--line);stroke-width:1}.axis{stroke:var(--soft)}"
         ".line{fill:none;stroke-width:2.2}.bar{fill-opacity:.55}.touch{fill-opacity:0}"
         ".s0{stroke:var(--s0)}.s1{stroke:var(--s1)}.s2{stroke:var(--s2)}.s3{stroke:var(--s3)}"
         ".dot,.bar,.touch{stroke:none}"
         ".dot.s0,.bar.s0,.touch.s0{fill:var(--s0)}.dot.s1,.bar.s1,.touch.s1{fill:var(--s1)}"
         ".dot.s2,.bar.s2,.touch.s2{fill:var(--s2)}.dot.s3,.bar.s3,.touch.s3{fill:var(--s3)}"
         ".rule{stroke:var(--ink);stroke-dasharray:5 4}.rule-label{fill:var(--ink)}"
         ".cell{fill:var(--heat)}.cell-text{fill:var(--ink);font-size:11px}";
}

}  // namespace lipscope::app

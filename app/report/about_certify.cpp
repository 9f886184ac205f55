// SPDX-License-Identifier: Apache-2.0
// Certified radii.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "base64.h"
#include "report/png.h"
#include "report/reading.h"

namespace lipscope::app {
namespace {

constexpr std::size_t kMostRows = 1000;  // of the table of samples

struct Sample {
  Index index = 0;
  double label = 0, predicted = 0, radius = 0;
  std::optional<double> attack;
  std::string method;
  bool right = false;
};

std::vector<Sample> read_samples(const Json& document) {
  std::vector<Sample> samples;
  for (const Json& row : member(document, "samples")) {
    Sample s{.index = whole_number(row, "index").value_or(0),
             .label = number(row, "label").value_or(-1),
             .predicted = number(row, "predicted").value_or(-2),
             .radius = number(row, "radius").value_or(0),
             .attack = number(row, "attack_radius"),
             .method = text_of(row, "method")};
    s.right = s.label == s.predicted && !member(row, "tie").is_boolean();
    samples.push_back(std::move(s));
  }
  return samples;
}

double largest(const std::vector<Sample>& samples) {
  double most = 0;
  for (const Sample& s : samples) {
    if (!s.right) continue;
    if (std::isfinite(s.radius)) most = std::max(most, s.radius);
    if (s.attack && std::isfinite(*s.attack)) most = std::max(most, *s.attack);
  }
  return most;
}

// Share of all samples that are right and have a value of at least r, for r from 0 on.
Series accuracy_curve(const std::string& name, std::vector<double> values, std::size_t count) {
  constexpr std::size_t kPoints = 400;
  Series series{.name = name, .kind = Series::Kind::kStep};
  std::ranges::sort(values);
  const std::size_t stride = std::max<std::size_t>(1, values.size() / kPoints);
  const auto share = [&](std::size_t left) {
    return static_cast<double>(left) / static_cast<double>(std::max<std::size_t>(1, count));
  };
  const auto add = [&](double x, double y) {
    series.x.push_back(x);
    series.y.push_back(y);
    series.hints.push_back(fmt::format("{}: {} at radius {:.4g}", name, percent_text(y), x));
  };
  add(0, share(values.size()));
  for (std::size_t k = stride; k <= values.size(); k += stride) {
    if (std::isfinite(values[k - 1])) add(values[k - 1], share(values.size() - k));
  }
  return series;
}

Plot accuracy_plot(const std::vector<Sample>& samples) {
  Plot plot{
      .title = "Accuracy against radius", .x_label = "radius", .y_label = "share of all samples"};
  std::vector<double> certified, attacked;
  bool any = false;
  for (const Sample& s : samples) {
    if (!s.right) continue;
    certified.push_back(s.radius);
    attacked.push_back(s.attack.value_or(std::numeric_limits<double>::infinity()));
    any = any || s.attack;
  }
  plot.series.push_back(accuracy_curve("certified", certified, samples.size()));
  if (any) plot.series.push_back(accuracy_curve("attacked", attacked, samples.size()));
  plot.note = any ? "True robust accuracy lies between the curves: below the lower one nothing can "
                    "change the class (proved), above the upper one an input of another class is "
                    "known (confirmed)."
                  : "Proved: true robust accuracy is not below this curve.";
  return plot;
}

Plot radius_histogram(const std::vector<Sample>& samples) {
  constexpr std::size_t kBars = 24;
  Plot plot{.title = "Radii of right predictions", .x_label = "radius", .y_label = "samples"};
  const double most = largest(samples);
  const auto histogram = [&](const std::string& name, const auto& value_of) {
    Series bars{.name = name, .kind = Series::Kind::kBars};
    std::vector<int> counts(kBars);
    for (const Sample& s : samples) {
      const std::optional<double> value = s.right ? value_of(s) : std::nullopt;
      if (!value || !std::isfinite(*value) || most <= 0) continue;
      const auto bar = static_cast<std::size_t>(*value / most * kBars);
      ++counts[std::min(bar, kBars - 1)];
    }
    for (std::size_t k = 0; k < kBars; ++k) {
      bars.x.push_back(most * static_cast<double>(k) / kBars);
      bars.y.push_back(counts[k]);
      bars.hints.push_back(fmt::format("{}: {} samples from {:.4g} to {:.4g}", name, counts[k],
                                       most * static_cast<double>(k) / kBars,
                                       most * static_cast<double>(k + 1) / kBars));
    }
    bars.x.push_back(most);
    plot.series.push_back(std::move(bars));
  };
  histogram("certified", [](const Sample& s) { return std::optional(s.radius); });
  if (std::ranges::any_of(samples, [](const Sample& s) { return s.attack.has_value(); }))
    histogram("attack", [](const Sample& s) { return s.attack; });
  return plot;
}

Table radius_table(const Json& document) {
  Table table{.title = "Accuracy at chosen radii", .columns = {"radius", "certified"}};
  bool attacked = false;
  for (const Json& row : member(document, "certified"))
    attacked = attacked || number(row, "attacked_accuracy");
  if (attacked) table.columns.push_back("attacked");
  for (const Json& row : member(document, "certified")) {
    const double share = number(row, "accuracy").value_or(0);
    table.rows.push_back(
        {number_cell(number(row, "radius")), {percent_text(share), "proved", share}});
    if (!attacked) continue;
    const auto standing = number(row, "attacked_accuracy");
    table.rows.back().push_back(standing ? Cell{percent_text(*standing), "proved", *standing}
                                         : Cell{"–"});
  }
  return table;
}

Table class_table_of(const Json& document) {
  Table table{.title = "By class",
              .columns = {"class", "samples", "clean accuracy", "median radius", "median attack"}};
  for (const Json& row : member(document, "classes")) {
    const bool any = number(row, "count").value_or(0) > 0;
    const double clean = number(row, "clean_accuracy").value_or(0);
    table.rows.push_back(
        {number_cell(number(row, "class")), number_cell(number(row, "count")),
         any ? Cell{percent_text(clean), "", clean} : Cell{"–"},
         number_cell(any ? number(row, "median_radius") : std::nullopt, Side::kLower, "proved"),
         number_cell(number(row, "median_attack_radius"), Side::kUpper, "proved")});
  }
  return table;
}

Table sample_table(const std::vector<Sample>& samples) {
  Table table{.title = "Samples",
              .columns = {"sample", "label", "predicted", "radius", "attack", "method"},
              .id = "sample"};
  for (const Sample& s : samples) {
    if (table.rows.size() >= kMostRows) break;
    table.rows.push_back({number_cell(static_cast<double>(s.index)),
                          number_cell(s.label),
                          number_cell(s.predicted),
                          number_cell(s.radius, Side::kLower, "proved"),
                          number_cell(s.attack, Side::kUpper, "proved"),
                          {s.right ? s.method : "not right"}});
  }
  if (samples.size() > kMostRows)
    table.note = fmt::format("The first {} of {}; the result document has all of them.", kMostRows,
                             samples.size());
  return table;
}

Gallery gallery_of(const Json& document, const std::vector<Sample>& samples) {
  Gallery gallery{.title =
                      "From the smallest to the largest radius: class, certified radius and how "
                      "far an attack got, both proved"};
  const Json& images = member(document, "images");
  const auto channels = static_cast<std::size_t>(whole_number(images, "channels").value_or(0));
  const auto height = static_cast<std::size_t>(whole_number(images, "height").value_or(0));
  const auto width = static_cast<std::size_t>(whole_number(images, "width").value_or(0));
  for (const Json& image : member(images, "samples")) {
    const auto index = whole_number(image, "index");
    const auto bytes = from_base64(text_of(image, "data"));
    if (!index || !bytes || bytes->size() != channels * height * width) continue;
    const auto found = std::ranges::find(samples, *index, &Sample::index);
    if (found == samples.end()) continue;
    std::string caption =
        fmt::format("class {:g} · {}", found->predicted, format_down(found->radius, 3));
    if (found->attack) caption += fmt::format(" – {}", format_up(*found->attack, 3));
    const bool listed = static_cast<std::size_t>(found - samples.begin()) < kMostRows;
    gallery.pictures.push_back({write_png(*bytes, channels, height, width), caption,
                                listed ? fmt::format("sample-{}", found->index) : ""});
  }
  return gallery;
}

}  // namespace

Report report_on_certify(const Json& document) {
  const std::vector<Sample> samples = read_samples(document);
  const std::string norm = text_of(document, "norm");
  Report report{.title = "Certified robustness",
                .subtitle = fmt::format("{} · {} · {} samples · {} bounds",
                                        text_of(member(document, "model"), "file"), norm_text(norm),
                                        samples.size(), text_of(document, "scope"))};
  report.facts.push_back(
      {"clean accuracy", percent_text(number(document, "clean_accuracy").value_or(0)), "proved"});
  std::vector<double> radii;
  for (const Sample& s : samples) {
    if (s.right) radii.push_back(s.radius);
  }
  std::ranges::sort(radii);
  if (!radii.empty())
    report.facts.push_back({"median certified radius",
                            rounded(radii[(radii.size() - 1) / 2], Side::kLower), "proved"});
  const Json& required = member(document, "required");
  if (required.is_object()) {
    const bool holds = member(required, "holds") == true,
               decided = member(required, "decided") == true;
    report.facts.push_back(
        {fmt::format("required {} at {:g}", percent_text(number(required, "accuracy").value_or(0)),
                     number(required, "radius").value_or(0)),
         holds     ? "holds"
         : decided ? "does not hold"
                   : "not decided",
         decided ? "proved" : ""});
  }
  const Json& data = member(document, "data");
  if (const Json& range = member(data, "range"); range.is_array() && range.size() == 2) {
    const auto end = [&](std::size_t k) {
      return range[k].is_number() ? fmt::format("{:.5g}", range[k].get<double>()) : "inf";
    };
    report.facts.push_back({"data", fmt::format("{} to {}", end(0), end(1))});
  }
  if (const std::string unit = text_of(data, "unit"); !unit.empty())
    report.facts.push_back({"unit of radii", unit});
  const std::string inference = text_of(document, "inference");
  const std::string sums = text_of(document, "accumulate");
  std::string arithmetic = inference.empty() ? "real numbers" : inference;
  if (!sums.empty()) arithmetic += ", sums in " + sums;
  if (text_of(document, "subnormals") == "flushed") arithmetic += ", subnormal numbers flushed";
  report.facts.push_back({"arithmetic", arithmetic});
  if (const std::string dropped = text_of(document, "dropped"); !dropped.empty())
    report.facts.push_back({"left out", "final " + dropped});
  std::string note;
  for (const Json& hint : member(document, "hints")) {
    if (hint.is_string()) note += hint.get<std::string>() + " ";
  }
  report.sections.push_back(
      {"Accuracy under perturbation",
       note,
       {accuracy_plot(samples), radius_histogram(samples), radius_table(document)}});
  Gallery gallery = gallery_of(document, samples);
  if (!gallery.pictures.empty())
    report.sections.push_back({"Samples and their radii", "", {std::move(gallery)}});
  Section classes{"Classes", "", {class_table_of(document)}};
  HeatMap map = margin_map(member(document, "margins"));
  if (!map.rows.empty()) classes.blocks.emplace_back(std::move(map));
  report.sections.push_back(std::move(classes));
  report.sections.push_back({"Every sample",
                             "A wrong or undecided prediction has radius 0. Radii are in units of "
                             "the model's input after scaling.",
                             {sample_table(samples)}});
  return report;
}

}  // namespace lipscope::app

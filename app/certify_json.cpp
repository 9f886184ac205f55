// SPDX-License-Identifier: Apache-2.0
#include "certify_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base64.h"
#include "bound_json.h"
#include "conventions.h"

namespace lipscope::app {
namespace {

constexpr std::size_t kImages = 24;

// Samples to show: evenly spread over the radii, the smallest and the largest among them.
std::vector<std::size_t> samples_to_show(const Certified& found) {
  std::vector<std::size_t> order(found.decisions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t s) { return !found.right(s); });
  std::ranges::stable_sort(order, {}, [&](std::size_t s) { return found.decisions[s].radius; });
  std::vector<std::size_t> shown;
  const std::size_t count = std::min(kImages, order.size());
  for (std::size_t k = 0; k < count; ++k)
    shown.push_back(order[count > 1 ? k * (order.size() - 1) / (count - 1) : 0]);
  return shown;
}

// Bytes row by row, channels together, darkest to brightest entry of the data as 0 to 255.
Json image_json(const Certified& found, std::size_t s) {
  const auto channels = static_cast<std::size_t>(found.data.image[0]);
  const auto size = static_cast<std::size_t>(found.data.size), plane = size / channels;
  const auto pixels = std::span(found.data.points).subspan(s * size, size);
  const auto [low, high] = std::ranges::minmax_element(found.data.points);
  const double span = *high > *low ? *high - *low : 1;
  std::vector<unsigned char> bytes;
  for (std::size_t p = 0; p < plane; ++p) {
    for (std::size_t c = 0; c < channels; ++c)
      bytes.push_back(
          static_cast<unsigned char>(std::lround(255 * (pixels[c * plane + p] - *low) / span)));
  }
  return {{"index", s}, {"data", to_base64(bytes)}};
}

Json optional_number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json class_json(const Certified& found) {
  Json list = Json::array();
  const std::vector<ClassRow> rows = class_rows(found);
  for (std::size_t c = 0; c < rows.size(); ++c) {
    const ClassRow& row = rows[c];
    Json certified = Json::array();
    for (const double radius : found.radii) {
      const auto first = radius == 0 && !found.flags.inference.empty()
                             ? std::ranges::upper_bound(row.radii, 0.0)  // see unproved()
                             : std::ranges::lower_bound(row.radii, radius);
      certified.push_back(row.count > 0 ? static_cast<double>(row.radii.end() - first) /
                                              static_cast<double>(row.count)
                                        : 0);
    }
    list.push_back(
        {{"class", c},
         {"count", row.count},
         {"clean_accuracy",
          row.count > 0 ? static_cast<double>(row.right) / static_cast<double>(row.count) : 0},
         {"median_radius", median_of(row.radii)},
         {"median_attack_radius",
          row.attacks.empty() ? Json(nullptr) : Json(median_of(row.attacks))},
         {"certified", std::move(certified)}});
  }
  return list;
}

}  // namespace

std::vector<ClassRow> class_rows(const Certified& found) {
  std::vector<ClassRow> rows(static_cast<std::size_t>(found.constants.classes));
  for (std::size_t s = 0; s < found.decisions.size(); ++s) {
    ClassRow& row = rows[static_cast<std::size_t>(found.data.labels[s])];
    ++row.count;
    if (!found.right(s)) continue;
    ++row.right;
    row.radii.push_back(found.decisions[s].radius);
    if (const auto& attack = found.decisions[s].attack_radius) row.attacks.push_back(*attack);
  }
  for (ClassRow& row : rows) {
    std::ranges::sort(row.radii);
    std::ranges::sort(row.attacks);
  }
  return rows;
}

double median_of(const std::vector<double>& ascending) {
  return ascending.empty() ? 0 : ascending[(ascending.size() - 1) / 2];
}

Json certify_document(const Certified& found) {
  const double count = static_cast<double>(std::max<Index>(1, found.data.count));
  Json document{{"schema", "lipscope.certify/1"},
                {"model", {{"file", found.model_file}, {"sha256", found.sha256}}},
                {"output", found.output},
                {"norm", found.norm.name()},
                {"scope", found.flags.scope},
                {"count", found.data.count},
                {"clean_accuracy", static_cast<double>(found.clean()) / count}};
  document["certified"] = Json::array();
  for (const double radius : found.radii) {
    document["certified"].push_back(
        {{"radius", radius},
         {"accuracy", static_cast<double>(found.certified_at(radius)) / count},
         {"attacked_accuracy", found.flags.attack
                                   ? Json(static_cast<double>(found.standing_at(radius)) / count)
                                   : Json(nullptr)}});
  }
  document["guarantee"] = {{"radius", "proved"}, {"attack_radius", "proved"}};
  add_conventions(found.conventions, document);
  document["dropped"] = found.dropped.empty() ? Json(nullptr) : Json(found.dropped);
  document["inference"] =
      found.flags.inference.empty() ? Json(nullptr) : Json(found.flags.inference);
  if (!found.flags.accumulate.empty()) document["accumulate"] = found.flags.accumulate;
  if (!found.flags.inference.empty()) {
    document["subnormals"] = found.flags.flush_to_zero ? "flushed" : "kept";
    document["squash"] = found.squash.empty() ? Json(nullptr) : Json(found.squash);
  }
  document["classes"] = class_json(found);
  document["margins"] = Json::array();
  for (Index i = 0; i < found.constants.classes; ++i) {
    for (Index j = i + 1; j < found.constants.classes && found.constants.upper.size() <= 300; ++j) {
      document["margins"].push_back(
          {{"margin", {i, j}}, {"upper", to_json(found.constants.at(i, j))}});
    }
  }
  document["samples"] = Json::array();
  for (std::size_t s = 0; s < found.decisions.size(); ++s) {
    const Decision& d = found.decisions[s];
    document["samples"].push_back({{"index", s},
                                   {"label", found.data.labels[s]},
                                   {"predicted", d.predicted},
                                   {"radius", d.radius},
                                   {"method", d.method},
                                   {"attack_radius", optional_number(d.attack_radius)},
                                   {"rival", d.rival >= 0 ? Json(d.rival) : Json(nullptr)}});
    if (!d.certain) document["samples"].back()["tie"] = true;
  }
  if (!found.data.image.empty()) {
    document["images"] = {{"channels", found.data.image[0]},
                          {"height", found.data.image[1]},
                          {"width", found.data.image[2]},
                          {"samples", Json::array()}};
    for (const std::size_t s : samples_to_show(found))
      document["images"]["samples"].push_back(image_json(found, s));
  }
  if (found.required) {
    document["required"] = {{"radius", found.required->radius},
                            {"accuracy", found.required->percent / 100},
                            {"holds", found.verdict() == Verdict::kHolds},
                            {"decided", found.verdict() != Verdict::kOpen}};
  }
  document["outcome"] = to_string(found.outcome);
  document["hints"] = found.hints;
  document["seconds"] = found.seconds;
  document["seconds_constants"] = found.seconds_constants;
  return document;
}

}  // namespace lipscope::app

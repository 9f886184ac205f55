// SPDX-License-Identifier: Apache-2.0
#include "certify_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base64.h"
#include "bound_json.h"
#include "conventions.h"

namespace lipscope::app {
namespace {

constexpr std::size_t kMostMargins = 300;

// Bytes row by row, channels together, smallest to largest entry of the data as 0 to 255.
Json image_json(const Certified& found, std::size_t s) {
  const auto channels = static_cast<std::size_t>(found.data.image[0]);
  const auto size = static_cast<std::size_t>(found.data.size), plane = size / channels;
  const auto pixels = std::span(found.data.points).subspan(s * size, size);
  const auto [low, high] = found.data.entries;
  const double span = high > low ? high - low : 1;
  std::vector<unsigned char> bytes;
  for (std::size_t p = 0; p < plane; ++p) {
    for (std::size_t c = 0; c < channels; ++c)
      bytes.push_back(
          static_cast<unsigned char>(std::lround(255 * (pixels[c * plane + p] - low) / span)));
  }
  return {{"index", found.data.indices[s]}, {"data", to_base64(bytes)}};
}

Json data_json(const Certified& found) {
  const LabelledData& data = found.data;
  const DataFlags& flags = found.flags.data;
  Json json{
      {"file", flags.data},      {"sha256", data.sha256},
      {"count", data.in_file},   {"limit", flags.limit > 0 ? Json(flags.limit) : Json(nullptr)},
      {"scale", data.scale},     {"range", {data.scaled.low, data.scaled.high}},
      {"unit", unit_text(found)}};
  if (!flags.labels.empty())
    json["labels"] = {{"file", flags.labels}, {"sha256", data.labels_sha256}};
  if (!flags.mean.empty()) json["mean"] = flags.mean;
  if (!flags.std.empty()) json["std"] = flags.std;
  return json;
}

void add_arithmetic(const CertifyFlags& flags, const Certified& found, Json& document) {
  document["dropped"] = found.dropped.empty() ? Json(nullptr) : Json(found.dropped);
  document["inference"] = flags.inference.empty() ? Json(nullptr) : Json(flags.inference);
  if (!flags.accumulate.empty()) document["accumulate"] = flags.accumulate;
  if (flags.inference.empty()) return;
  document["subnormals"] = flags.flush_to_zero ? "flushed" : "kept";
  document["squash"] = found.squash.empty() ? Json(nullptr) : Json(found.squash);
}

Json margins_json(const PairConstants& constants) {
  Json list = Json::array();
  for (Index i = 0; i < constants.classes; ++i) {
    for (Index j = i + 1; j < constants.classes && constants.upper.size() <= kMostMargins; ++j)
      list.push_back({{"margin", {i, j}}, {"upper", to_json(constants.at(i, j))}});
  }
  return list;
}

}  // namespace

std::string unit_text(const Certified& found) {
  const DataFlags& flags = found.flags.data;
  if (!found.conventions.integers_as_reals.empty()) return "whole numbers that the model takes";
  if (!flags.mean.empty() || !flags.std.empty()) return "the input behind --scale, --mean, --std";
  return flags.scale.empty() || found.data.scale == 1 ? "the data as they are"
                                                      : "the data times " + flags.scale;
}

Json certify_document(const Certified& found) {
  const CertifyFlags& flags = found.flags;
  Json document{{"schema", "lipscope.certify/1"},
                {"model", {{"file", found.model_file}, {"sha256", found.sha256}}},
                {"data", data_json(found)},
                {"output", found.output},
                {"norm", found.norm.name()},
                {"scope", flags.scope},
                {"options",
                 {{"attack", flags.attack},
                  {"parts", flags.parts},
                  {"seed", found.seed},
                  {"effort", found.effort ? Json(*found.effort) : Json(nullptr)}}},
                {"guarantee", {{"radius", "proved"}, {"attack_radius", "proved"}}}};
  if (!flags.data.shard.empty()) document["shard"] = flags.data.shard;
  add_conventions(found.conventions, document);
  add_arithmetic(flags, found, document);
  add_table(found.table, document);
  document["margins"] = margins_json(found.constants);
  if (!found.data.image.empty()) {
    document["images"] = {{"channels", found.data.image[0]},
                          {"height", found.data.image[1]},
                          {"width", found.data.image[2]},
                          {"samples", Json::array()}};
    for (const std::size_t s : rows_to_show(found.table))
      document["images"]["samples"].push_back(image_json(found, s));
  }
  document["outcome"] = to_string(found.outcome);
  document["hints"] = found.hints;
  document["seconds"] = found.seconds;
  document["seconds_constants"] = found.seconds_constants;
  return document;
}

}  // namespace lipscope::app

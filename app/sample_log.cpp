// SPDX-License-Identifier: Apache-2.0
#include "sample_log.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/rounding.h"
#include "io/gzip.h"
#include "lipscope/error.h"
#include "output_file.h"

namespace lipscope::app {
namespace {

constexpr const char* kSchema = "lipscope.certify-samples/1";

[[noreturn]] void bad_log(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::kBadFile,
              fmt::format("{}: {}; choose another file for --resume", path, what));
}

Json to_row(Index sample, const Decision& d) {
  return {{"index", sample},
          {"radius", d.radius},
          {"method", d.method},
          {"rival", d.rival},
          {"attack_radius", d.attack_radius ? Json(*d.attack_radius) : Json(nullptr)}};
}

struct SavedSample {
  Index index = 0;
  Decision decision;
};

std::optional<double> distance_in(const Json& value) {
  if (value.is_string() && value == "inf") return kInf;
  if (!value.is_number() || !(value.get<double>() >= 0)) return std::nullopt;
  return value.get<double>();
}

// A whole number from `least` to below `end`.
std::optional<Index> index_in(const Json& value, Index least, Index end) {
  if (!value.is_number_integer()) return std::nullopt;
  const Index index = value.get<Index>();
  return index >= least && index < end ? std::optional(index) : std::nullopt;
}

// Nothing for a line that to_row() cannot have made.
std::optional<SavedSample> from_row(const Json& row, const LogLimits& limits) {
  if (!row.is_object()) return std::nullopt;
  for (const char* key : {"index", "radius", "method", "rival", "attack_radius"}) {
    if (!row.contains(key)) return std::nullopt;
  }
  const auto index = index_in(row["index"], 0, limits.samples);
  const auto rival = index_in(row["rival"], -1, limits.classes);
  const auto radius = distance_in(row["radius"]), attack = distance_in(row["attack_radius"]);
  if (!index || !rival || !radius || !row["method"].is_string()) return std::nullopt;
  if (!row["attack_radius"].is_null() && !(attack && *attack >= *radius)) return std::nullopt;
  SavedSample saved{.index = *index, .decision = {}};
  saved.decision.radius = *radius;
  saved.decision.method = row["method"].get<std::string>();
  saved.decision.rival = *rival;
  saved.decision.attack_radius = attack;
  return saved;
}

std::string text_in(const std::string& path) {
  if (!std::filesystem::exists(path)) return "";
  const std::vector<std::byte> bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

SampleLog::SampleLog(const std::string& path, const Json& question, const LogLimits& limits)
    : path_(path) {
  if (path.empty()) return;
  const std::string first = to_text(question) + "\n";
  std::string kept = first;
  const std::string text = text_in(path);
  std::size_t begin = 0;
  for (int line = 1; begin < text.size(); ++line) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      if (line == 1 && !first.starts_with(text)) bad_log(path, "not a file of earlier samples");
      break;  // cut off
    }
    const Json row = Json::parse(text.substr(begin, end - begin), nullptr, false);
    begin = end + 1;
    if (line == 1) {
      if (!row.is_object() || !row.contains("schema") || row["schema"] != kSchema)
        bad_log(path, "not a file of earlier samples");
      if (to_text(row) != to_text(question))
        bad_log(path, "its samples are of another model, data or question");
      continue;
    }
    const auto saved = from_row(row, limits);
    if (!saved) bad_log(path, fmt::format("line {} is no sample of this run", line));
    earlier_[saved->index] = saved->decision;
    kept += to_text(row) + "\n";
  }
  write_file(path, kept);
  file_ = std::fopen(path.c_str(), "ab");
  if (file_ == nullptr) throw Error(ErrorCode::kBadFile, path + ": cannot be written");
}

SampleLog::~SampleLog() {
  if (file_ != nullptr) std::fclose(file_);
}

void SampleLog::add(Index sample, const Decision& decision) {
  if (file_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  const std::string line = to_text(to_row(sample, decision)) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0)
    throw Error(ErrorCode::kBadFile, path_ + ": cannot be written");
}

}  // namespace lipscope::app

// SPDX-License-Identifier: Apache-2.0
#include "sample_log.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "io/input_file.h"
#include "lipscope/error.h"
#include "output_file.h"

namespace lipscope::app {
namespace {

[[noreturn]] void bad_log(std::string_view name, std::string_view what) {
  throw Error(ErrorCode::kBadFile,
              fmt::format("{}: {}; choose another file for --resume", name, what));
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

double distance_in(const JsonValue& value) {
  const double distance = value.number();
  if (!(distance >= 0)) value.refuse("expected a number of at least 0");
  return distance;
}

// A whole number from `least` to below `end`.
Index index_in(const JsonValue& value, Index least, Index end) {
  const Index index = value.integer();
  if (index < least || index >= end)
    value.refuse(fmt::format("expected a whole number from {} to {}", least, end - 1));
  return index;
}

SavedSample from_row(const JsonValue& row, const LogLimits& limits) {
  return row.object([&](JsonFields& fields) {
    SavedSample saved{.index = index_in(fields.at("index"), 0, limits.samples), .decision = {}};
    saved.decision.radius = distance_in(fields.at("radius"));
    saved.decision.method = fields.at("method").text();
    saved.decision.rival = index_in(fields.at("rival"), -1, limits.classes);
    if (const JsonValue attack = fields.at("attack_radius"); !attack.is_null()) {
      saved.decision.attack_radius = distance_in(attack);
      if (*saved.decision.attack_radius < saved.decision.radius)
        attack.refuse("below the radius within which there is none");
    }
    return saved;
  });
}

void require_question(const Json& line, std::string_view name, const Json& question) {
  const auto schema = line.is_object() ? line.find("schema") : line.end();
  if (schema == line.end() || !schema->is_string() ||
      !schema->get_ref<const std::string&>().starts_with("lipscope.certify-samples/"))
    bad_log(name, "not a file of earlier samples");
  if (*schema != question["schema"]) bad_log(name, "written by another version of this program");
  if (to_text(line) != to_text(question))
    bad_log(name, "its samples are of another model, data or question");
}

std::string text_in(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30U;
  if (!std::filesystem::exists(path)) return "";
  const std::vector<std::byte> bytes = read_file(path, kMostBytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

EarlierSamples read_samples(std::string_view text, std::string_view name, const Json& question,
                            const LogLimits& limits) {
  constexpr JsonLimits kLine{.bytes = std::size_t{1} << 20U, .depth = 4, .values = 1000};
  const std::string first = to_text(question) + "\n";
  EarlierSamples found{.decisions = {}, .text = first};
  if (text.find('\n') == std::string_view::npos) {  // a first line that was cut off
    if (!first.starts_with(text)) bad_log(name, "not a file of earlier samples");
    return found;
  }
  std::size_t begin = 0, end = 0;
  for (int line = 1; (end = text.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
    const std::string place = fmt::format("line {}", line);
    try {
      const Json row = parse_json(text.substr(begin, end - begin), place, kLine);
      if (line++ == 1) {
        require_question(row, name, question);
        continue;
      }
      const SavedSample saved = from_row(JsonValue(row, place), limits);
      if (!found.decisions.emplace(saved.index, saved.decision).second)
        JsonValue(row, place).refuse(fmt::format("sample {} is there twice", saved.index));
      found.text += to_text(row) + "\n";
    } catch (const Error& error) {
      if (line == 1) bad_log(name, "not a file of earlier samples");
      if (begin == 0) throw;
      bad_log(name, error.what());
    }
  }
  return found;
}

SampleLog::SampleLog(const std::string& path, const Json& question, const LogLimits& limits)
    : path_(path) {
  if (path.empty()) return;
  EarlierSamples earlier = read_samples(text_in(path), path, question, limits);
  earlier_ = std::move(earlier.decisions);
  write_file(path, earlier.text);
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

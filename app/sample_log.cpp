// SPDX-License-Identifier: Apache-2.0
#include "sample_log.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/sha256.h"
#include "io/input_file.h"
#include "lipscope/error.h"
#include "output_file.h"

namespace lipscope::app {
namespace {

[[noreturn]] void bad_log(std::string_view name, std::string_view what) {
  throw Error(ErrorCode::kBadFile,
              fmt::format("{}: {}; choose another file for --resume", name, what));
}

// Of a line and the question it belongs to.
std::string checksum(std::string_view question, const Json& row) {
  const std::string text = std::string(question) + to_text(row);
  return sha256(std::as_bytes(std::span(text))).substr(0, 16);
}

double distance_in(const JsonValue& value) {
  const double distance = value.number();
  if (!(distance >= 0)) value.refuse("expected a number of at least 0");
  return distance;
}

std::pair<std::string, SampleWork> from_row(const JsonValue& row, Index classes) {
  return row.object([&](JsonFields& fields) {
    SampleWork work;
    const std::string sample = fields.at("sample").text();
    work.decision.radius = distance_in(fields.at("radius"));
    work.decision.method = fields.at("method").text();
    const JsonValue rival = fields.at("rival");
    work.decision.rival = rival.integer();
    if (work.decision.rival < -1 || work.decision.rival >= classes)
      rival.refuse(fmt::format("expected a whole number from -1 to {}", classes - 1));
    if (const JsonValue attack = fields.at("attack_radius"); !attack.is_null()) {
      work.decision.attack_radius = distance_in(attack);
      if (*work.decision.attack_radius < work.decision.radius)
        attack.refuse("below the radius within which there is none");
    }
    work.attacked = fields.at("attacked").flag();
    for (auto& [name, radius] :
         {std::pair<const char*, double*>{"whole_failed", &work.whole_failed},
          {"cases_failed", &work.cases_failed}}) {
      if (const JsonValue value = fields.at(name); !value.is_null()) *radius = distance_in(value);
    }
    work.complete = fields.at("complete").flag();
    (void)fields.at("check").text();
    return std::pair(sample, work);
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

std::string sample_line(std::string_view question, const std::string& sample,
                        const SampleWork& work) {
  const auto or_null = [](double value) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
  };
  const Decision& d = work.decision;
  Json row{{"sample", sample},
           {"radius", d.radius},
           {"method", d.method},
           {"rival", d.rival},
           {"attack_radius", d.attack_radius ? Json(*d.attack_radius) : Json(nullptr)},
           {"attacked", work.attacked},
           {"whole_failed", or_null(work.whole_failed)},
           {"cases_failed", or_null(work.cases_failed)},
           {"complete", work.complete}};
  row["check"] = checksum(question, row);
  return to_text(row) + "\n";
}

EarlierSamples read_samples(std::string_view text, std::string_view name, const Json& question,
                            Index classes) {
  constexpr JsonLimits kLine{.bytes = std::size_t{1} << 20U, .depth = 4, .values = 1000};
  const std::string asked = to_text(question), first = asked + "\n";
  EarlierSamples found{.samples = {}, .text = first};
  if (text.find('\n') == std::string_view::npos) {  // a first line that was cut off
    if (!first.starts_with(text)) bad_log(name, "not a file of earlier samples");
    return found;
  }
  std::size_t begin = 0, end = 0;
  for (int line = 1; (end = text.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
    const std::string place = fmt::format("line {}", line);
    try {
      Json row = parse_json(text.substr(begin, end - begin), place, kLine);
      if (line++ == 1) {
        require_question(row, name, question);
        continue;
      }
      const auto [sample, work] = from_row(JsonValue(row, place), classes);
      const Json said = row["check"];
      row.erase("check");
      if (said != checksum(asked, row))
        JsonValue(row, place).refuse("not as it was written: its checksum is another one");
      found.samples[sample] = work;
    } catch (const Error& error) {
      if (line == 1) bad_log(name, "not a file of earlier samples");
      if (begin == 0) throw;
      bad_log(name, error.what());
    }
  }
  for (const auto& [sample, work] : found.samples) found.text += sample_line(asked, sample, work);
  return found;
}

SampleLog::SampleLog(const std::string& path, const Json& question, Index classes)
    : path_(path), question_(to_text(question)) {
  if (path.empty()) return;
  EarlierSamples earlier = read_samples(text_in(path), path, question, classes);
  earlier_ = std::move(earlier.samples);
  write_file(path, earlier.text);
  file_ = std::fopen(path.c_str(), "ab");
  if (file_ == nullptr) throw Error(ErrorCode::kBadFile, path + ": cannot be written");
}

SampleLog::~SampleLog() {
  if (file_ != nullptr) std::fclose(file_);
}

void SampleLog::add(const std::string& sample, const SampleWork& work) {
  if (file_ == nullptr) return;
  const std::string line = sample_line(question_, sample, work);
  const std::lock_guard lock(mutex_);
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0)
    throw Error(ErrorCode::kBadFile, path_ + ": cannot be written");
}

}  // namespace lipscope::app

// SPDX-License-Identifier: Apache-2.0
#include "sample_log.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "lipscope/error.h"
#include "output_file.h"

namespace lipscope::app {
namespace {

[[noreturn]] void bad_log(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::kBadFile,
              fmt::format("{}: {}; choose another file for --resume", path, what));
}

}  // namespace

SampleLog::SampleLog(const std::string& path, const Json& question) : path_(path) {
  if (path.empty()) return;
  std::string kept = to_text(question) + "\n";
  std::ifstream file(path, std::ios::binary);
  if (file) {
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::size_t begin = 0;
    for (int line = 0; begin < text.size(); ++line) {
      const std::size_t end = text.find('\n', begin);
      if (end == std::string::npos) {
        if (line == 0) bad_log(path, "not a file of earlier samples");
        break;  // cut off
      }
      const Json row = Json::parse(text.substr(begin, end - begin), nullptr, false);
      begin = end + 1;
      if (line == 0) {
        if (!row.is_object() || row.value("schema", "") != "lipscope.certify-samples/1")
          bad_log(path, "not a file of earlier samples");
        if (to_text(row) != to_text(question))
          bad_log(path, "its samples are of another model, data or question");
        continue;
      }
      if (!row.is_object() || !row.contains("index") || !row["index"].is_number_integer())
        bad_log(path, fmt::format("line {} is no sample", line + 1));
      earlier_[row["index"].get<Index>()] = row;
      kept += to_text(row) + "\n";
    }
  }
  write_file(path, kept);
  file_ = std::fopen(path.c_str(), "ab");
  if (file_ == nullptr) throw Error(ErrorCode::kBadFile, path + ": cannot be written");
}

SampleLog::~SampleLog() {
  if (file_ != nullptr) std::fclose(file_);
}

void SampleLog::add(const Json& sample) {
  if (file_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  const std::string line = to_text(sample) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0)
    throw Error(ErrorCode::kBadFile, path_ + ": cannot be written");
}

}  // namespace lipscope::app

// SPDX-License-Identifier: Apache-2.0
#include "output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "lipscope/error.h"

namespace lipscope::app {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const std::string& path, int error) {
  throw Error(ErrorCode::kBadFile, fmt::format("{}: cannot be written ({}); choose another place",
                                               path, std::generic_category().message(error)));
}

// 0, or the reason why not.
int write_all(const fs::path& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return errno;
  int error = 0;
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size()) error = errno;
  if (std::fclose(file) != 0 && error == 0) error = errno;
  return error;
}

// Where a link points to, so that it is not replaced by what it stands for.
fs::path target_of(const std::string& path) {
  std::error_code none;
  const fs::path target = fs::canonical(path, none);
  return none ? fs::path(path) : target;
}

bool is_special(const fs::path& path) {
  std::error_code none;
  const fs::file_status status = fs::status(path, none);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

}  // namespace

void write_file(const std::string& path, const std::string& text) {
  const fs::path target = target_of(path);
  if (is_special(target)) {
    if (const int error = write_all(target, text)) cannot_write(path, error);
    return;
  }
  const fs::path partial = target.string() + ".part";
  int error = write_all(partial, text);
  if (error == 0 && std::rename(partial.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return;
  std::remove(partial.c_str());
  cannot_write(path, error);
}

void require_writable(const std::string& path) {
  const fs::path target = target_of(path);
  std::error_code none;
  if (fs::is_directory(target, none)) cannot_write(path, EISDIR);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (access(is_special(target) ? target.c_str() : folder.c_str(), W_OK) != 0)
    cannot_write(path, errno);
}

}  // namespace lipscope::app

// SPDX-License-Identifier: Apache-2.0
#include "files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <vector>

#include "io/input_file.h"
#include "lipscope/error.h"
#include "output_file.h"

namespace lipscope::app {
namespace {

namespace fs = std::filesystem;

struct FileRole {
  bool read = false, written = false;
};

std::map<const CLI::Option*, FileRole>& file_roles() {
  static std::map<const CLI::Option*, FileRole> roles;
  return roles;
}

CLI::Option* with_role(CLI::Option* option, FileRole role) {
  file_roles()[option] = role;
  return option;
}

// What tells one file from another. One that is not there yet is known by its folder and its name.
struct FileIdentity {
  dev_t device = 0;
  ino_t number = 0;
  std::string name;  // empty for a file that exists

  bool operator==(const FileIdentity&) const = default;
};

struct CommandFile {
  std::string flag, path;  // as the user typed them
  FileRole role;
  FileIdentity identity;
  bool plain = false;  // or not there yet
  bool once = false;   // a pipe or a terminal: read once, it is empty

  [[nodiscard]] std::string words() const { return flag + " " + path; }
};

// Fills in what the file at a path is.
void identify(CommandFile& file, const std::string& path) {
  struct stat status {};
  const bool exists =
      (path == "-" ? ::fstat(STDIN_FILENO, &status) : ::stat(path.c_str(), &status)) == 0;
  file.plain = !exists || S_ISREG(status.st_mode);
  file.once = !file.plain && !S_ISDIR(status.st_mode);
  if (!exists) {
    const fs::path target = output_target(path);
    const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
    if (::stat(folder.c_str(), &status) != 0) status = {};
    file.identity.name = target.filename();
  }
  file.identity.device = status.st_dev;
  file.identity.number = status.st_ino;
}

std::string flag_of(const CLI::Option& option) {
  if (!option.get_snames().empty()) return "-" + option.get_snames().front();
  if (!option.get_lnames().empty()) return "--" + option.get_lnames().front();
  return option.get_name();
}

std::vector<CommandFile>& command_files() {
  static std::vector<CommandFile> files;
  return files;
}

void add_files_of(const CLI::Option& option, FileRole role) {
  for (const std::string& path : option.results()) {
    if (path.empty() || (path == "-" && role.written)) continue;  // standard output
    CommandFile file{.flag = flag_of(option), .path = path, .role = role};
    identify(file, role.written ? path : split_array_path(path).file);
    command_files().push_back(std::move(file));
  }
}

[[noreturn]] void refuse_files(const std::string& what) {
  throw Error(ErrorCode::kUsage, what + "; choose another file");
}

void check_pair(const CommandFile& a, const CommandFile& b) {
  if (a.identity != b.identity) return;
  if (a.role.written && b.role.written && a.plain)
    refuse_files(fmt::format("{} and {} are the same file", a.words(), b.words()));
  if (a.plain && (a.role.written || b.role.written)) {
    const CommandFile& out = a.role.written ? a : b;
    const CommandFile& in = a.role.written ? b : a;
    refuse_files(fmt::format("{} would overwrite {}", out.words(), in.words()));
  }
  if (a.once && a.role.read && b.role.read)
    refuse_files(fmt::format("{} and {} are the same pipe or terminal, which can be read once",
                             a.words(), b.words()));
}

}  // namespace

CLI::Option* reads_file(CLI::Option* option) { return with_role(option, {.read = true}); }
CLI::Option* writes_file(CLI::Option* option) { return with_role(option, {.written = true}); }
CLI::Option* keeps_file(CLI::Option* option) {
  return with_role(option, {.read = true, .written = true});
}

void check_files(const CLI::App& command) {
  std::vector<CommandFile>& files = command_files();
  files.clear();
  for (const CLI::Option* option : command.get_options()) {
    const auto role = file_roles().find(option);
    if (role != file_roles().end()) add_files_of(*option, role->second);
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) check_pair(files[j], files[i]);
  }
  for (const CommandFile& file : files) {
    if (file.role.written) require_writable(file.path);
  }
}

OnnxModel read_model(const std::string& path) {
  OnnxModel model = OnnxModel::read(path);
  for (const std::string& data : model.data_files()) {
    CommandFile input{.flag = "the model's external data", .path = data, .role = {.read = true}};
    identify(input, data);
    for (const CommandFile& file : command_files()) {
      if (file.role.written) check_pair(file, input);
    }
  }
  return model;
}

}  // namespace lipscope::app

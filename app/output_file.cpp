// SPDX-License-Identifier: Apache-2.0
#include "output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
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
int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

int write_and_close(int file, std::string_view text) {
  const int error = write_all(file, text);
  return ::close(file) != 0 && error == 0 ? errno : error;
}

// Opening a pipe that nobody reads would wait for ever: it fails with ENXIO.
int open_special(const fs::path& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return file;
  const int flags = ::fcntl(file, F_GETFL);
  if (flags < 0 || ::fcntl(file, F_SETFL, flags & ~O_NONBLOCK) < 0) {
    const int error = errno;
    ::close(file);
    errno = error;
    return -1;
  }
  return file;
}

bool is_special(const fs::path& path) {
  std::error_code none;
  const fs::file_status status = fs::status(path, none);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// The unfinished file, for remove_unfinished: a handler of signals may neither allocate nor lock.
std::array<char, PATH_MAX> unfinished_path;
std::atomic<bool> unfinished = false;

// A file of its own beside the target, under a name that nobody can know before; it becomes the
// target or vanishes.
class PartialFile {
 public:
  explicit PartialFile(const fs::path& target) : target_(target) {
    struct stat old {};
    const bool replaces = ::stat(target.c_str(), &old) == 0;
    constexpr mode_t kNewFile = 0666, kPrivate = 0600;
    do {
      std::uint64_t noise = 0;
      if (::getentropy(&noise, sizeof noise) != 0) break;
      path_ = folder_of(target) / fmt::format(".lipscope-{:016x}.part", noise);
      file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     replaces ? kPrivate : kNewFile);
    } while (file_ < 0 && errno == EEXIST);
    error_ = file_ < 0 ? errno : 0;
    if (file_ < 0) return;
    remember();
    if (replaces && ::fchmod(file_, old.st_mode & 0777U) != 0) error_ = errno;
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    if (file_ < 0) return;
    if (!moved_) ::unlink(path_.c_str());
    if (remembered_) unfinished = false;
  }

  // 0, or the reason why the target is what it was.
  int finish(std::string_view text) {
    if (file_ < 0) return error_;
    const int error = write_and_close(file_, text);
    if (error_ == 0) error_ = error;
    moved_ = error_ == 0 && std::rename(path_.c_str(), target_.c_str()) == 0;
    return moved_ ? 0 : error_ != 0 ? error_ : errno;
  }

 private:
  void remember() {
    const std::string& path = path_.native();
    if (unfinished || path.size() >= unfinished_path.size()) return;
    std::memcpy(unfinished_path.data(), path.c_str(), path.size() + 1);
    unfinished = remembered_ = true;
  }

  fs::path target_, path_;
  int file_ = -1, error_ = 0;
  bool moved_ = false, remembered_ = false;
};

}  // namespace

std::string output_target(const std::string& path) {
  if (is_special(path)) return path;  // /dev/stdout leads to a name that is no file
  constexpr int kMostLinks = 40;
  fs::path target = path;
  std::error_code none;
  for (int i = 0; i < kMostLinks && fs::is_symlink(target, none); ++i)
    target = folder_of(target) / fs::read_symlink(target, none);
  return target;
}

void write_file(const std::string& path, const std::string& text) {
  const fs::path target = output_target(path);
  int error = 0;
  if (is_special(target)) {
    const int file = open_special(target);
    error = file < 0 ? errno : write_and_close(file, text);
    if (error == ENXIO && fs::is_fifo(target))
      throw Error(ErrorCode::kBadFile,
                  fmt::format("{}: a pipe that nobody reads; start its reader first", path));
  } else {
    error = PartialFile(target).finish(text);
  }
  if (error != 0) cannot_write(path, error);
}

void require_writable(const std::string& path) {
  const fs::path target = output_target(path);
  std::error_code none;
  if (fs::is_directory(target, none)) cannot_write(path, EISDIR);
  if (::access(is_special(target) ? target.c_str() : folder_of(target).c_str(), W_OK) != 0)
    cannot_write(path, errno);
}

void remove_unfinished() {
  if (unfinished) ::unlink(unfinished_path.data());
}

}  // namespace lipscope::app

// SPDX-License-Identifier: Apache-2.0
#include "io/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/checkpoint.h"
#include "base/memory_budget.h"
#include "io/arrays/bytes.h"

namespace lipscope {
namespace {

constexpr std::size_t kFirstRead = std::size_t{64} << 10U;
constexpr int kPollMilliseconds = 100;

[[noreturn]] void cannot_read(const std::string& path, int error) {
  if (error == ENOENT) bad_file(display_name(path), "no such file; check the path");
  bad_file(display_name(path), "cannot be read ({}); check its permissions",
           std::generic_category().message(error));
}

// Closes what it holds, but for standard input.
struct Descriptor {
  int number;
  explicit Descriptor(int opened) : number(opened) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number > STDIN_FILENO) ::close(number);
  }
};

// Opening a pipe must not wait for its writer: InputFile::read does, and not for ever.
int open_for_reading(const std::string& path) {
  if (path == "-") return STDIN_FILENO;
  const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (opened < 0) cannot_read(path, errno);
  return opened;
}

class InputFile {
 public:
  explicit InputFile(const std::string& path) : path_(path), file_(open_for_reading(path)) {
    struct stat status {};
    if (::fstat(file_.number, &status) != 0) cannot_read(path, errno);
    if (S_ISDIR(status.st_mode))
      bad_file(display_name(path), "is a directory; give the path of a file");
    // A terminal is a device, too, but somebody may type there.
    const bool device = S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode);
    if (device && path != "-" && ::isatty(file_.number) != 1)
      bad_file(path, "is a device; give the path of a file, or - for standard input");
    plain_ = S_ISREG(status.st_mode);
    named_pipe_ = S_ISFIFO(status.st_mode) && path != "-";
    size_ = plain_ ? static_cast<std::size_t>(status.st_size) : 0;
  }

  // As far as it is known beforehand.
  [[nodiscard]] std::size_t size() const { return size_; }

  // 0 at the end.
  std::size_t read(std::byte* to, std::size_t count) {
    while (true) {
      const short state = plain_ ? POLLIN : wait_for_data();
      if (state == 0 && !named_pipe_) continue;  // reading would wait
      const ssize_t got = ::read(file_.number, to, count);
      const bool would_wait = got < 0 && (errno == EAGAIN || errno == EINTR);
      if (got < 0 && !would_wait) cannot_read(path_, errno);
      has_writer_ = has_writer_ || got > 0 || (got < 0 && errno == EAGAIN);
      // A pipe nobody has opened for writing looks like one that has come to its end.
      if (got > 0) return static_cast<std::size_t>(got);
      if (got == 0 && (!named_pipe_ || has_writer_ || (state & POLLHUP) != 0)) return 0;
    }
  }

 private:
  // What there is after a moment: data, the end, or nothing yet (0).
  [[nodiscard]] short wait_for_data() const {
    try {
      checkpoint();
    } catch (const Stopped& stopped) {
      if (stopped.cause != StopCause::kTime || !named_pipe_ || has_writer_) throw;
      bad_file(path_, "a pipe that nobody writes to; start its writer first");
    }
    pollfd wanted{.fd = file_.number, .events = POLLIN, .revents = 0};
    return ::poll(&wanted, 1, kPollMilliseconds) > 0 ? wanted.revents : short{0};
  }

  const std::string& path_;
  Descriptor file_;
  bool plain_ = false, named_pipe_ = false, has_writer_ = false;
  std::size_t size_ = 0;
};

}  // namespace

std::string display_name(const std::string& path) { return path == "-" ? "standard input" : path; }

// Keys may hold colons themselves ("net.npz:input:0"), so the first prefix that is a file wins.
ArrayPath split_array_path(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto is_file = [&](const std::string& file) {
    return file == "-" || (fs::exists(file, ignored) && !fs::is_directory(file, ignored));
  };
  if (path == "-" || fs::exists(path, ignored)) return {path, std::nullopt};
  for (std::size_t at = path.find(':'); at != std::string::npos; at = path.find(':', at + 1)) {
    if (is_file(path.substr(0, at))) return {path.substr(0, at), path.substr(at + 1)};
  }
  return {path, std::nullopt};
}

std::vector<std::byte> read_file(const std::string& path, std::size_t max_bytes) {
  InputFile file(path);
  if (file.size() > max_bytes)
    bad_file(display_name(path), "{} bytes; {} are read at most", file.size(), max_bytes);
  require_memory(static_cast<double>(file.size()), display_name(path) + ": reading it");
  // The size is a hint only: pipes have none, and a file may change while it is read.
  std::vector<std::byte> bytes(file.size() == 0 ? kFirstRead : file.size() + 1);
  std::size_t filled = 0;
  while (const std::size_t got = file.read(bytes.data() + filled, bytes.size() - filled)) {
    filled += got;
    if (filled > max_bytes)
      bad_file(display_name(path), "more than the {} bytes that are read at most", max_bytes);
    if (filled == bytes.size()) bytes.resize(bytes.size() + bytes.size() / 2);
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace lipscope

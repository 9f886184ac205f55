// SPDX-License-Identifier: Apache-2.0
// The program while it runs: pipes it reads, signals it gets.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace lipscope::testing_support {

// Waits for what must come; a minute is for a machine that does nothing for us.
template <class Condition>
bool wait_until(Condition condition) {
  for (int tries = 0; tries < 60'000; ++tries) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

class RunningProgram {
 public:
  explicit RunningProgram(const std::string& arguments) {
    const std::string command = "exec " LIPSCOPE_PROGRAM " " + arguments;
    child_ = fork();
    if (child_ == 0) {
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;
  ~RunningProgram() {
    if (child_ > 0) kill(child_, SIGKILL), waitpid(child_, nullptr, 0);
  }

  void signal(int number) const { kill(child_, number); }
  // Its exit code, -1 when a signal has ended it.
  int wait() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t child_;
};

// Runs the program, interrupts it as soon as a line of its --progress json, which goes to the file
// `events`, holds `mark`, and gives back its exit code.
inline int interrupted_at(const std::string& mark, const std::string& arguments,
                          const std::string& events) {
  RunningProgram program(arguments + " --progress json 2>" + events);
  EXPECT_TRUE(wait_until([&] {
    std::ifstream file(events);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    return text.find(mark) != std::string::npos;
  })) << mark;
  program.signal(SIGINT);
  return program.wait();
}

// A named pipe that the program reads.
class NamedPipe {
 public:
  explicit NamedPipe(std::string path) : path_(std::move(path)) {
    EXPECT_EQ(mkfifo(path_.c_str(), 0600), 0);
  }
  NamedPipe(const NamedPipe&) = delete;
  NamedPipe& operator=(const NamedPipe&) = delete;
  ~NamedPipe() { close_end(); }

  // Opens it once the program has.
  void open_end() {
    EXPECT_TRUE(wait_until([&] { return (end_ = try_open()) >= 0; })) << path_;
  }
  void write_all(const std::string& text) const {
    const int flags = fcntl(end_, F_GETFL);
    fcntl(end_, F_SETFL, flags & ~O_NONBLOCK);
    EXPECT_EQ(::write(end_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void close_end() {
    if (end_ >= 0) ::close(end_);
    end_ = -1;
  }
  // The program has read it to its end.
  void wait_until_read() const {
    EXPECT_TRUE(wait_until([&] {
      const int other = try_open();
      if (other >= 0) ::close(other);
      return other < 0 && errno == ENXIO;
    })) << path_;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[nodiscard]] int try_open() const { return ::open(path_.c_str(), O_WRONLY | O_NONBLOCK); }

  std::string path_;
  int end_ = -1;
};

}  // namespace lipscope::testing_support

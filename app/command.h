// SPDX-License-Identifier: Apache-2.0
// One subcommand is one file of commands/: it declares its flags and gives back what to run.
// Nothing in app/ does mathematics.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/memory_budget.h"
#include "lipscope/bound.h"

namespace CLI {
class App;  // files that declare options include <CLI/CLI.hpp>
}

namespace lipscope::app {

// Flags every command has.
struct Common {
  bool json = false;
  bool quiet = false;
  std::string output;  // -o; empty: standard output
  int threads = 0;
  std::optional<double> time;     // seconds, as the user wants it
  std::optional<double> effort;   // work instead of time
  std::optional<double> memory;   // 10^9 bytes
  std::uint64_t seed = 1;         // of every random search
  std::string progress = "auto";  // or "json"
  // Runs since the command was read, to its limit; stops at an interrupt.
  std::shared_ptr<const RunClock> clock;

  [[nodiscard]] bool is_over() const { return clock->passed(clock->limit()); }
  [[nodiscard]] double seconds_left() const {
    return clock->stop_requested() ? 0 : std::max(0.0, clock->limit() - clock->now());
  }
  // Of a run that was ended early.
  [[nodiscard]] Outcome cut_short() const {
    if (clock->stop_requested()) return Outcome::kInterrupted;
    return memory_refusals() > 0 ? Outcome::kMemoryLimit : Outcome::kTimeLimit;
  }
};

// What a command has to say: the document for machines and the text for people.
struct Result {
  std::function<Json()> document;
  std::function<std::string()> text;
  int exit_code = 0;
};

using Action = std::function<Result()>;

struct Command {
  std::string_view name, summary;
  std::string_view examples;  // two lines, shown by --help
  Action (*declare)(CLI::App& app, const Common& common);
  double seconds = 60;  // where the user gives neither time nor effort
};

}  // namespace lipscope::app

namespace lipscope {
using app::Command;
[[nodiscard]] std::vector<Command>
make_command_table();  // generated from the list in CMakeLists.txt
}  // namespace lipscope

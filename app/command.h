// SPDX-License-Identifier: Apache-2.0
// One subcommand is one file of commands/: it declares its flags and gives back what to run.
// Nothing in app/ does mathematics.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

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
  double time = 60;               // seconds
  double memory = 0;              // 10^9 bytes; 0: no limit
  std::uint64_t seed = 1;         // of every random search
  std::string progress = "auto";  // or "json"
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
};

}  // namespace lipscope::app

namespace lipscope {
using app::Command;
[[nodiscard]] std::vector<Command>
make_command_table();  // generated from the list in CMakeLists.txt
}  // namespace lipscope

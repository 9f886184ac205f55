// SPDX-License-Identifier: Apache-2.0
// The program: finds the command, runs it, turns results and failures into streams and exit codes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/checkpoint.h"
#include "base/memory_budget.h"
#include "base/parallel.h"
#include "base/printable.h"
#include "command.h"
#include "files.h"
#include "interrupt.h"
#include "lipscope/error.h"
#include "memory_guard.h"
#include "number_flags.h"
#include "output_file.h"
#include "restart.h"
#include "terminal.h"

namespace lipscope::app {
namespace {

constexpr int kExitUsage = 2;

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage: return kExitUsage;
    case ErrorCode::kBadFile:
    case ErrorCode::kShape: return 3;
    case ErrorCode::kUnsupported: return 4;
    case ErrorCode::kInternal: return 70;
  }
  return 70;
}

// Names out of files may hold anything.
void print_error(const Common& common, std::string_view code, const std::string& text) {
  const std::string message = one_line(text);
  if (common.json) {
    const Json document{{"schema", "lipscope.error/1"}, {"code", code}, {"message", message}};
    fmt::print("{}\n", to_text(document));
  }
  fmt::print(stderr, "lipscope: {}\n", message);
}

int fail(const Common& common, ErrorCode code, const std::string& text) {
  print_error(common, to_string(code), text);
  return exit_code(code);
}

int fail_memory(const Common& common) {
  return fail(common, ErrorCode::kUnsupported,
              fmt::format("the memory limit of {} was reached before there was a result; raise "
                          "--memory",
                          memory_text(memory_limit())));
}

// Where a run was ended before it had anything to say.
int fail_stopped(const Common& common, StopCause cause) {
  if (cause == StopCause::kTime) {
    return fail(common, ErrorCode::kUnsupported,
                "time limit reached before there was a result; raise --time");
  }
  if (cause == StopCause::kMemory) return fail_memory(common);
  print_error(common, "interrupted", "interrupted before there was a result");
  return kExitInterrupted;
}

// For limits that leave no time to return.
[[noreturn]] void end_at_once(int code) {
  std::fflush(nullptr);
  remove_unfinished();
  std::_Exit(code);
}

bool to_stdout(const std::string& path) { return path.empty() || path == "-"; }

void write(const std::string& path, const std::string& text) {
  if (!to_stdout(path)) return write_file(path, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw Error(ErrorCode::kBadFile, "the result cannot be written to standard output");
}

struct Subcommand {
  const Command* command;
  CLI::App* app;
  Common common;
  Action action;
};

// CLI11's own check for this prints the largest double in full.
std::string at_least_zero(const std::string& text) {
  double value = 0;
  const bool good = CLI::detail::lexical_cast(text, value) && value >= 0;
  return good ? "" : fmt::format("'{}' is not a number of at least 0", text);
}

std::string above_zero(const std::string& text) {
  double value = 0;
  const bool good = CLI::detail::lexical_cast(text, value) && value > 0;
  return good ? "" : fmt::format("'{}' is not a number above 0", text);
}

// `seconds`: the limit of a command where none is given.
void add_common_flags(CLI::App& app, Common& common, double seconds) {
  app.add_flag("--json", common.json, "one JSON document on standard output");
  writes_file(app.add_option("-o,--output-file", common.output, "write the result to this file"))
      ->type_name("FILE");
  takes_whole(app.add_option("--threads", common.threads, "threads to use (default: all cores)"))
      ->check(CLI::Range(0, 4096))
      ->type_name("N");
  takes_limit(
      app.add_option("--time", common.time,
                     fmt::format("seconds to spend at most (default: {})",
                                 std::isinf(seconds) ? "no limit" : fmt::to_string(seconds))))
      ->check(at_least_zero)
      ->type_name("SECONDS");
  takes_numbers(app.add_option("--effort", common.effort,
                               "work to do instead of time to spend, for the same answer in every "
                               "run; 1 is about a default run"))
      ->check(above_zero)
      ->excludes("--time")
      ->type_name("E");
  takes_limit(app.add_option("--memory", common.memory,
                             "memory to use at most (default: 80 % of what there is)"))
      ->check(at_least_zero)
      ->type_name("GB");
  takes_whole(app.add_option("--seed", common.seed, "seed of the random searches"))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--progress", common.progress, "json: one JSON line per event on standard error")
      ->check(CLI::IsMember({"auto", "json"}))
      ->type_name("auto|json");
  app.add_flag("--quiet", common.quiet, "no progress, no warnings");
}

bool asks_for_json(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--json") return true;
  }
  return false;
}

// CLI11's message, with the nearest option for a misspelt one.
std::string explain(const CLI::ParseError& error, const std::vector<Subcommand>& subcommands) {
  std::string message = error.what();
  for (const Subcommand& sub : subcommands) {
    if (!sub.app->parsed()) continue;
    std::vector<std::string> known;
    for (const CLI::Option* option : sub.app->get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    for (const std::string& word : sub.app->remaining()) {
      const std::string suggestion = nearest(word, known);
      if (!suggestion.empty()) message += fmt::format("; did you mean {}?", suggestion);
    }
    return fmt::format("{}: {} ('lipscope {} --help' lists the options)", sub.command->name,
                       message, sub.command->name);
  }
  return message + " ('lipscope --help' lists the commands)";
}

std::shared_ptr<const RunClock> clock_of(const Subcommand& sub) {
  const std::stop_token stop = stop_on_interrupt();
  if (sub.common.effort) return RunClock::by_work(*sub.common.effort, stop);
  return RunClock::by_wall(sub.common.time.value_or(sub.command->seconds), stop);
}

int run(Subcommand& sub) {
  sub.common.clock = clock_of(sub);
  set_threads(sub.common.threads);
  keep_memory_limit(sub.common.memory ? *sub.common.memory * 1e9 : memory_limit(),
                    [&common = sub.common] { end_at_once(fail_memory(common)); });
  check_files(*sub.app);
  const RunClock& clock = *sub.common.clock;
  const Result result = [&] {
    const RunScope scope(clock, cut_after(clock.limit(), clock.limit()));
    return sub.action();
  }();
  const MemoryReserve reserve;
  write(sub.common.output,
        sub.common.json ? to_text(result.document()) + "\n" : plain_text(result.text()));
  return result.exit_code;
}

int main(int argc, char** argv) {
  (void)stop_on_interrupt();  // from the first moment on
  CLI::App app("lipscope: how far can a network's output move when its input moves a little?",
               "lipscope");
  app.require_subcommand(1);
  app.footer("Ctrl-C or SIGTERM ends a command with what it has found, exit code 130.");
  const std::vector<Command> commands = make_command_table();
  std::vector<Subcommand> subcommands(commands.size());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    Subcommand& sub = subcommands[i];
    sub.command = &commands[i];
    names.emplace_back(commands[i].name);
    sub.app = app.add_subcommand(names.back(), std::string(commands[i].summary));
    sub.action = commands[i].declare(*sub.app, sub.common);
    add_common_flags(*sub.app, sub.common, commands[i].seconds);
    if (!commands[i].examples.empty())
      sub.app->footer("Examples:\n" + std::string(commands[i].examples));
  }
  Common usage;
  usage.json = asks_for_json(argc, argv);
  if (argc == 1) {
    fmt::print(stderr, "{}", app.help());
    return kExitUsage;
  }
  if (argc > 1 && argv[1][0] != '-' &&
      std::find(names.begin(), names.end(), argv[1]) == names.end()) {
    const std::string suggestion = nearest(argv[1], names);
    return fail(usage, ErrorCode::kUsage,
                fmt::format("there is no command '{}'{} ('lipscope --help' lists them)", argv[1],
                            suggestion.empty() ? "" : "; did you mean '" + suggestion + "'?"));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    for (const Subcommand& sub : subcommands) {
      if (sub.app->parsed()) return fmt::print("{}", sub.app->help()), 0;
    }
    return fmt::print("{}", app.help()), 0;
  } catch (const CLI::ParseError& error) {
    return fail(usage, ErrorCode::kUsage, explain(error, subcommands));
  }
  for (Subcommand& sub : subcommands) {
    if (!sub.app->parsed()) continue;
    try {
      require_items(*sub.app, {argv, static_cast<std::size_t>(argc)});
      return run(sub);
    } catch (const Error& error) {
      return fail(sub.common, error.code(), error.what());
    } catch (const Stopped& stopped) {
      return fail_stopped(sub.common, stopped.cause);
    } catch (const std::bad_alloc&) {
      return fail_memory(sub.common);
    } catch (const std::exception& error) {
      return fail(sub.common, ErrorCode::kInternal,
                  fmt::format("internal error: {}", error.what()));
    }
  }
  return kExitUsage;
}

}  // namespace
}  // namespace lipscope::app

int main(int argc, char** argv) {
  lipscope::app::forget_restart();
  return lipscope::app::main(argc, argv);
}

// SPDX-License-Identifier: Apache-2.0
// merge: results for parts of the samples as one result.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "files.h"
#include "io/json_file.h"
#include "merge_results.h"

namespace lipscope {
namespace {

using namespace app;

struct MergeFlags {
  std::vector<std::string> files;
  bool partial = false;
};

std::string merge_text(const Json& document, std::size_t files) {
  std::string text = fmt::format("{} results, {} samples, clean accuracy {:.2f} %\n", files,
                                 document.at("count").get<Index>(),
                                 100 * document.at("clean_accuracy").get<double>());
  for (const Json& row : document.at("certified"))
    text += fmt::format("  radius {:.6g}  certified {:.2f} %\n", row.at("radius").get<double>(),
                        100 * row.at("accuracy").get<double>());
  if (document.contains("missing"))
    text += fmt::format("  {} samples are missing\n", document["missing"].get<Index>());
  return text + "  --json -o FILE writes the result\n";
}

Action declare_merge(CLI::App& app, const Common& common) {
  auto flags = std::make_shared<MergeFlags>();
  reads_file(app.add_option("results", flags->files, "results made with --json and --shard"))
      ->required()
      ->type_name("RESULT.json...");
  app.add_flag("--partial", flags->partial, "join what there is, although samples are missing");
  return [flags, &common]() -> Result {
    std::vector<NamedResult> results;
    for (const std::string& file : flags->files) results.push_back({file, read_json(file)});
    auto merged = std::make_shared<const Json>(merge_results(results, flags->partial));
    // A file is for machines, whatever the flags say.
    const bool to_file = !common.output.empty() && common.output != "-";
    return {.document = [merged] { return *merged; },
            .text =
                [merged, to_file, files = results.size()] {
                  return to_file ? to_text(*merged) + "\n" : merge_text(*merged, files);
                }};
  };
}

}  // namespace

std::vector<Command> command_merge() {
  return {{.name = "merge",
           .summary = "results for parts of the samples as one result",
           .examples = "  lipscope merge part1.json part2.json -o all.json\n"
                       "  lipscope merge part*.json --json | lipscope report - -o all.html",
           .declare = declare_merge,
           .seconds = HUGE_VAL}};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// report: a result document as a page to look at.
#include "report/report.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "files.h"
#include "io/input_file.h"
#include "io/json_file.h"

namespace lipscope {
namespace {

using namespace app;

struct ReportFlags {
  std::string file, format = "html";
};

std::string render(const Report& report, const std::string& format) {
  if (format == "markdown") return to_markdown(report);
  if (format == "csv") return to_csv(report);
  if (format == "svg") return to_svg(report);
  return to_html(report);
}

Action declare_report(CLI::App& app, const Common&) {
  auto flags = std::make_shared<ReportFlags>();
  reads_file(
      app.add_option("result", flags->file, "a result made with --json; - is standard input"))
      ->required()
      ->type_name("RESULT.json");
  app.add_option("--format", flags->format, "what to make")
      ->check(CLI::IsMember({"html", "markdown", "csv", "svg"}))
      ->type_name("html|markdown|csv|svg")
      ->capture_default_str();
  return [flags]() -> Result {
    const Json document = read_json(flags->file);
    auto text = std::make_shared<std::string>(
        render(make_report(document, display_name(flags->file)), flags->format));
    return {.document =
                [text, flags] {
                  return Json{
                      {"schema", "lipscope.report/1"}, {"format", flags->format}, {"text", *text}};
                },
            .text = [text] { return *text; }};
  };
}

}  // namespace

std::vector<Command> command_report() {
  return {{.name = "report",
           .summary = "a result as one page with plots, or as Markdown, CSV or SVG",
           .examples =
               "  lipscope certify net.onnx --data x.npy --labels y.npy --json -o result.json\n"
               "  lipscope report result.json -o report.html",
           .declare = declare_report,
           .seconds = HUGE_VAL}};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// version: what this program is, what it was built with and what it runs on.
#include "lipscope/version.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/parallel.h"
#include "command.h"
#include "lipscope/runtime.h"

namespace lipscope {
namespace {

using namespace app;

Json version_document() {
  Json features = Json::object();
  for (const auto& [name, value] : build_features()) features[name] = value;
  const BlasKernel kernel = blas_kernel();
  return {{"schema", "lipscope.version/1"},
          {"version", version()},
          {"features", std::move(features)},
          {"processor", processor()},
          {"threads", threads()},
          {"blas",
           {{"version", blas_version()},
            {"config", blas_config()},
            {"kernel", kernel.chosen},
            {"recommended", kernel.recommended}}}};
}

std::string version_text() {
  std::string text = fmt::format("lipscope {}\n", version());
  for (const auto& [name, value] : build_features())
    text += fmt::format("  {:<10} {}\n", name, value);
  const BlasKernel kernel = blas_kernel();
  text += fmt::format("  {:<10} {}\n  {:<10} {}\n", "processor", processor(), "threads", threads());
  text += fmt::format("  {:<10} {}", "kernel", kernel.chosen);
  if (kernel.recommended != kernel.chosen) {
    text +=
        fmt::format("; OPENBLAS_CORETYPE={} would be faster on this processor", kernel.recommended);
  }
  return text + "\n";
}

}  // namespace

std::vector<Command> command_version() {
  return {{.name = "version",
           .summary = "version and libraries",
           .examples = "  lipscope version\n  lipscope version --json",
           .declare = [](CLI::App&, const Common&) -> Action {
             return [] { return Result{.document = version_document, .text = version_text}; };
           }}};
}

}  // namespace lipscope

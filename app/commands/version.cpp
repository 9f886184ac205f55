// SPDX-License-Identifier: Apache-2.0
// version: what this program is and what it was built with.
#include "lipscope/version.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace lipscope {
namespace {

using namespace app;

Json version_document() {
  Json features = Json::object();
  for (const auto& [name, value] : build_features()) features[name] = value;
  return {
      {"schema", "lipscope.version/1"}, {"version", version()}, {"features", std::move(features)}};
}

std::string version_text() {
  std::string text = fmt::format("lipscope {}\n", version());
  for (const auto& [name, value] : build_features())
    text += fmt::format("  {:<10} {}\n", name, value);
  return text;
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

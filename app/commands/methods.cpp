// SPDX-License-Identifier: Apache-2.0
// methods: the ways to find bounds.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "lipscope/bound.h"
#include "terminal.h"

namespace lipscope {
namespace {

using namespace app;

Json methods_document() {
  Json rows = Json::array();
  for (const MethodInfo& info : method_list()) {
    rows.push_back({{"method", info.id},
                    {"side", info.side},
                    {"guarantee", to_string(info.guarantee)},
                    {"summary", info.summary},
                    {"theory", info.theory}});
  }
  return {{"schema", "lipscope.methods/1"}, {"methods", std::move(rows)}};
}

std::string methods_text() {
  std::vector<std::vector<std::string>> rows{{"method", "side", "guarantee", "what it does"}};
  for (const MethodInfo& info : method_list()) {
    rows.push_back({std::string(info.id), std::string(info.side),
                    std::string(to_string(info.guarantee)), std::string(info.summary)});
  }
  return format_table(rows);
}

}  // namespace

std::vector<Command> command_methods() {
  return {{.name = "methods",
           .summary = "the methods that 'bound' uses",
           .examples = "  lipscope methods\n  lipscope methods --json",
           .declare = [](CLI::App&, const Common&) -> Action {
             return [] { return Result{.document = methods_document, .text = methods_text}; };
           }}};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// ops: the operators that can be loaded.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "ops/kind.h"
#include "terminal.h"

namespace lipscope {
namespace {

using namespace app;

Json ops_document() {
  Json rows = Json::array();
  for (const OpKind& kind : op_kinds())
    rows.push_back({{"op", kind.name}, {"derivative", has_derivative(kind)}});
  return {{"schema", "lipscope.ops/1"}, {"ops", std::move(rows)}};
}

std::string ops_text() {
  std::vector<std::vector<std::string>> rows{{"operator", "derivative"}};
  for (const OpKind& kind : op_kinds())
    rows.push_back({std::string(kind.name), has_derivative(kind) ? "yes" : "no"});
  return format_table(rows) + fmt::format("{} ONNX operators, opsets 1 to 21\n", op_kinds().size());
}

}  // namespace

std::vector<Command> command_ops() {
  return {{.name = "ops",
           .summary = "the ONNX operators that can be loaded",
           .examples = "  lipscope ops\n  lipscope ops --json",
           .declare = [](CLI::App&, const Common&) -> Action {
             return [] { return Result{.document = ops_document, .text = ops_text}; };
           }}};
}

}  // namespace lipscope

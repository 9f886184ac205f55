// SPDX-License-Identifier: Apache-2.0
// ops: the operators that can be loaded, and the facets they offer to analyses.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "ops/facets.h"
#include "terminal.h"

namespace lipscope {
namespace {

using namespace app;

Json ops_document() {
  Json rows = Json::array(), facets = Json::array();
  for (const OpKind& kind : op_kinds()) {
    rows.push_back({{"op", kind.name},
                    {"derivative", has_derivative(kind)},
                    {"facets", offered_facets(kind)}});
  }
  for (const Facet& facet : all_facets())
    facets.push_back({{"facet", facet.name}, {"meaning", facet.meaning}});
  return {{"schema", "lipscope.ops/1"}, {"ops", std::move(rows)}, {"facets", std::move(facets)}};
}

std::string ops_text() {
  std::vector<std::vector<std::string>> rows{{"operator", "derivative", "other facets"}}, facets;
  for (const OpKind& kind : op_kinds()) {
    std::vector<std::string_view> others = offered_facets(kind);
    std::erase(others, "derivative");
    rows.push_back({std::string(kind.name), has_derivative(kind) ? "yes" : "no",
                    fmt::format("{}", fmt::join(others, " "))});
  }
  for (const Facet& facet : all_facets())
    facets.push_back({std::string(facet.name), std::string(facet.meaning)});
  return format_table(rows) +
         fmt::format("{} ONNX operators, opsets 1 to 21\n\n", op_kinds().size()) +
         format_table(facets);
}

}  // namespace

std::vector<Command> command_ops() {
  return {{.name = "ops",
           .summary = "the ONNX operators that can be loaded, and what each can be asked",
           .examples = "  lipscope ops\n  lipscope ops --json",
           .declare = [](CLI::App&, const Common&) -> Action {
             return [] { return Result{.document = ops_document, .text = ops_text}; };
           }}};
}

}  // namespace lipscope

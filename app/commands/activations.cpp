// SPDX-License-Identifier: Apache-2.0
// activations: the exact slope range of every function applied entry by entry.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "lipscope/norm.h"
#include "ops/elementwise/elementwise.h"
#include "terminal.h"

namespace lipscope {
namespace {

using namespace app;

Json activations_document() {
  Json rows = Json::array();
  for (const SlopeRow& row : slope_table()) {
    rows.push_back({{"name", row.name},
                    {"attributes", row.attributes},
                    {"slope_min", row.slopes.lo},
                    {"slope_max", row.slopes.hi},
                    {"lipschitz",
                     {{"value", row.lipschitz},
                      {"guarantee", to_string(Guarantee::kProved)},
                      {"method", "activations-1"}}},
                    {"where", row.where}});
  }
  return {{"schema", "lipscope.activations/1"}, {"activations", std::move(rows)}};
}

std::string activations_text() {
  constexpr int kDigits = 13;
  std::vector<std::vector<std::string>> rows{
      {"activation", "smallest slope", "largest slope", "Lipschitz constant", "where"}};
  for (const SlopeRow& row : slope_table()) {
    rows.push_back({row.attributes.empty() ? row.name : row.name + " " + row.attributes,
                    format_down(row.slopes.lo, kDigits), format_up(row.slopes.hi, kDigits),
                    format_up(row.lipschitz, kDigits), fmt::format("{:.6g}", row.where)});
  }
  return format_table(rows) +
         "Over all real arguments, rounded outward; the constant is the same for every p.\n";
}

}  // namespace

std::vector<Command> command_activations() {
  return {{.name = "activations",
           .summary = "exact slope ranges of the functions applied entry by entry",
           .examples = "  lipscope activations\n  lipscope activations --json",
           .declare = [](CLI::App&, const Common&) -> Action {
             return
                 [] { return Result{.document = activations_document, .text = activations_text}; };
           }}};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include "certify/cases_json.h"

#include <nlohmann/json.hpp>

#include "lipscope/error.h"

namespace lipscope {
namespace {

std::string hex_text(const std::vector<std::uint8_t>& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t b : bytes) {
    text += kDigits[b / 16];
    text += kDigits[b % 16];
  }
  return text;
}

std::vector<std::uint8_t> hex_bytes(const std::string& text) {
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    throw Error(ErrorCode::kBadFile, "lines of an end of a range are no hexadecimal digits");
  };
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(16 * digit(text[i]) + digit(text[i + 1])));
  return bytes;
}

}  // namespace

Json cases_to_json(const CaseTree& tree) {
  Json nodes = Json::array();
  for (const CaseTree::Node& node : tree.nodes) {
    if (node.split) {
      nodes.push_back({{"split", {node.split->layer, node.split->place}},
                       {"at", node.at},
                       {"below", node.children[0]},
                       {"above", node.children[1]}});
    } else if (!node.empty.units.empty()) {
      Json units = Json::array();
      for (std::size_t u = 0; u < node.empty.units.size(); ++u)
        units.push_back(
            {node.empty.units[u].layer, node.empty.units[u].place, node.empty.weights[u]});
      nodes.push_back({{"empty", std::move(units)}, {"constant", node.empty.constant}});
    } else {
      nodes.push_back({{"multipliers", node.multipliers}});
    }
  }
  Json document{{"nodes", std::move(nodes)}, {"input_weights", tree.input_weights}};
  if (!tree.narrowing.empty()) document["narrowing"] = tree.narrowing;
  for (const auto& [unit, above, mixes] : tree.sharp_ends) {
    document["ranges"].push_back({{"unit", {unit.layer, unit.place}},
                                  {"end", above ? "upper" : "lower"},
                                  {"lines", hex_text(mixes)}});
  }
  return document;
}

CaseTree cases_from_json(const Json& document) {
  CaseTree tree;
  tree.input_weights = document.at("input_weights").get<std::vector<std::vector<double>>>();
  if (document.contains("narrowing"))
    tree.narrowing = document["narrowing"].get<std::vector<std::vector<std::vector<double>>>>();
  if (document.contains("ranges")) {
    for (const Json& row : document["ranges"]) {
      tree.sharp_ends.push_back(
          {{row.at("unit").at(0).get<std::size_t>(), row.at("unit").at(1).get<std::size_t>()},
           row.at("end").get<std::string>() == "upper",
           hex_bytes(row.at("lines").get<std::string>())});
    }
  }
  for (const Json& row : document.at("nodes")) {
    CaseTree::Node node;
    if (row.contains("split")) {
      node.split = UnitId{row.at("split").at(0).get<std::size_t>(),
                          row.at("split").at(1).get<std::size_t>()};
      node.at = row.at("at").get<double>();
      node.children = {row.at("below").get<std::size_t>(), row.at("above").get<std::size_t>()};
    } else if (row.contains("empty")) {
      for (const Json& unit : row.at("empty")) {
        node.empty.units.push_back({unit.at(0).get<std::size_t>(), unit.at(1).get<std::size_t>()});
        node.empty.weights.push_back(unit.at(2).get<double>());
      }
      node.empty.constant = row.at("constant").get<bool>();
    } else {
      node.multipliers = row.at("multipliers").get<std::vector<double>>();
    }
    tree.nodes.push_back(std::move(node));
  }
  return tree;
}

}  // namespace lipscope

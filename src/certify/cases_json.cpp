// SPDX-License-Identifier: Apache-2.0
#include "certify/cases_json.h"

#include <nlohmann/json.hpp>

namespace lipscope {

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
  return document;
}

CaseTree cases_from_json(const Json& document) {
  CaseTree tree;
  tree.input_weights = document.at("input_weights").get<std::vector<std::vector<double>>>();
  if (document.contains("narrowing"))
    tree.narrowing = document["narrowing"].get<std::vector<std::vector<std::vector<double>>>>();
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

// SPDX-License-Identifier: Apache-2.0
#include "proof/cases_json.h"

#include <array>
#include <nlohmann/json.hpp>

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

std::vector<std::uint8_t> hex_bytes(const JsonValue& value) {
  const std::string& text = value.text();
  const auto digit = [&](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    value.refuse("expected hexadecimal digits");
  };
  if (text.size() % 2 != 0) value.refuse("expected pairs of hexadecimal digits");
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(16 * digit(text[i]) + digit(text[i + 1])));
  return bytes;
}

std::vector<double> number_list(const JsonValue& value) { return value.numbers(); }

UnitId read_unit(const JsonValue& value) {
  (void)value.of_size(2);
  return {value[0].count(), value[1].count()};
}

CaseTree::SharpEnd read_sharp_end(const JsonValue& value) {
  static constexpr std::array<std::string_view, 2> kEnds{"lower", "upper"};
  return value.object([](JsonFields& fields) {
    return CaseTree::SharpEnd{read_unit(fields.at("unit")),
                              fields.at("end").one_of(kEnds) == "upper",
                              hex_bytes(fields.at("lines"))};
  });
}

CaseTree::Node read_node(const JsonValue& value) {
  return value.object([](JsonFields& fields) {
    CaseTree::Node node;
    if (const auto split = fields.find("split")) {
      node.split = read_unit(*split);
      node.at = fields.at("at").finite();
      node.children = {fields.at("below").count(), fields.at("above").count()};
    } else if (const auto empty = fields.find("empty")) {
      for (std::size_t u = 0; u < empty->size(); ++u) {
        const JsonValue unit = (*empty)[u].of_size(3);
        node.empty.units.push_back({unit[0].count(), unit[1].count()});
        node.empty.weights.push_back(unit[2].number());
      }
      node.empty.constant = fields.at("constant").flag();
    } else {
      node.multipliers = fields.at("multipliers").numbers();
    }
    return node;
  });
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

CaseTree read_cases(JsonFields& fields) {
  CaseTree tree;
  tree.input_weights = fields.at("input_weights").list(number_list);
  if (const auto narrowing = fields.find("narrowing"))
    tree.narrowing =
        narrowing->list([](const JsonValue& round) { return round.list(number_list); });
  if (const auto ranges = fields.find("ranges")) tree.sharp_ends = ranges->list(read_sharp_end);
  tree.nodes = fields.at("nodes").list(read_node);
  return tree;
}

}  // namespace lipscope

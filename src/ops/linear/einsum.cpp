// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "ops/linear/multilinear.h"

namespace lipscope {
namespace {

// A label is a letter, or the position of a dimension of the ellipsis counted from its end.
using Label = std::pair<char, Index>;

// Labels of an operand of the given rank (an output: the rank the ellipsis leaves).
std::vector<Label> parse_term(const OnnxNode& node, const std::string& text, Index ellipsis_rank) {
  std::vector<Label> labels;
  bool seen = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(text[i])) != 0) {
      labels.emplace_back(text[i], 0);
      continue;
    }
    if (text.compare(i, 3, "...") != 0 || seen) node.malformed("equation term '" + text + "'");
    seen = true;
    for (Index d = ellipsis_rank; d-- > 0;) labels.emplace_back('.', d);
    i += 2;
  }
  return labels;
}

Index letter_count(const std::string& text) {
  return std::ranges::count_if(text, [](unsigned char c) { return std::isalpha(c) != 0; });
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> terms(1);
  for (const char c : text) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  return terms;
}

// Without "->": the ellipsis first, then the letters that occur once, in alphabetical order.
std::string implicit_output(const std::string& inputs) {
  std::map<char, int> uses;
  for (const char c : inputs) uses[c] += std::isalpha(static_cast<unsigned char>(c)) != 0 ? 1 : 0;
  std::string output = inputs.find("...") != std::string::npos ? "..." : "";
  for (const auto& [letter, n] : uses) {
    if (n == 1) output += letter;
  }
  return output;
}

Imported import_einsum(const OnnxNode& node) {
  std::string equation = node.text("equation", "");
  std::erase_if(equation, [](unsigned char c) { return std::isspace(c) != 0; });
  const std::size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  const std::string right =
      arrow == std::string::npos ? implicit_output(left) : equation.substr(arrow + 2);
  const std::vector<std::string> terms = split(left);
  if (static_cast<Index>(terms.size()) != node.num_inputs()) {
    node.malformed(fmt::format("equation '{}' has {} operands, the node {}", equation, terms.size(),
                               node.num_inputs()));
  }

  std::vector<std::vector<Label>> operands;
  std::map<Label, Index> extents;
  Index widest = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const ValueType& type = node.input(static_cast<Index>(i));
    if (type.type != node.input(0).type) node.malformed("operands of different element types");
    const Index rank = static_cast<Index>(type.shape.size()), letters = letter_count(terms[i]);
    const bool open = terms[i].find("...") != std::string::npos;
    if (open ? letters > rank : letters != rank) {
      node.malformed(
          fmt::format("term '{}' does not fit shape {}", terms[i], to_string(type.shape)));
    }
    if (open) widest = std::max(widest, rank - letters);
    operands.push_back(parse_term(node, terms[i], rank - letters));
    for (std::size_t d = 0; d < type.shape.size(); ++d) {
      Index& extent = extents.try_emplace(operands[i][d], 1).first->second;
      if (extent == 1) extent = type.shape[d];
      if (type.shape[d] != extent && type.shape[d] != 1) {
        node.malformed(
            fmt::format("operands of equation '{}' have different sizes for one label", equation));
      }
    }
  }

  Multilinear form{.name = "Einsum", .out = {node.input(0).type, {}}, .terms = {{1, {}}}};
  std::map<Label, std::size_t> position;
  for (const auto& [label, extent] : extents) {
    position[label] = form.extents.size();
    form.extents.push_back(extent);
  }
  const auto strides_by_label = [&](const std::vector<Label>& labels, const Shape& shape) {
    std::vector<Index> strides(form.extents.size(), 0);
    const std::vector<Index> by_dim = label_strides(shape);
    for (std::size_t d = 0; d < labels.size(); ++d) strides[position.at(labels[d])] += by_dim[d];
    return strides;
  };
  std::vector<Index> uses;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    form.strides.push_back(strides_by_label(operands[i], node.input(static_cast<Index>(i)).shape));
    form.terms[0].inputs.push_back(i);
    uses.push_back(static_cast<Index>(i));
  }
  const std::vector<Label> output = parse_term(node, right, widest);
  for (std::size_t d = 0; d < output.size(); ++d) {
    if (!extents.contains(output[d]) || std::count(output.begin(), output.end(), output[d]) != 1) {
      node.malformed(fmt::format("output labels of equation '{}'", equation));
    }
    form.out.shape.push_back(extents.at(output[d]));
  }
  form.out_strides = strides_by_label(output, form.out.shape);
  return {make_multilinear(std::move(form)), std::move(uses)};
}

std::vector<OpCase> einsum_cases(Rng& rng) {
  const auto make = [&](std::string equation, std::vector<Shape> shapes) {
    OpCase result{.inputs = {}, .attributes = {{"equation", std::move(equation)}}};
    for (Shape& shape : shapes) result.inputs.push_back({random_tensor(rng, std::move(shape))});
    return result;
  };
  std::vector<OpCase> cases = {
      make("ij,jk", {{3, 4}, {4, 5}}),
      make("bij, bjk -> bik", {{2, 6, 7}, {2, 7, 8}}),
      make("bhid,bhjd->bhij", {{2, 3, 6, 4}, {2, 3, 5, 4}}),
      make("bihd,bjhd->bhij", {{2, 6, 3, 8}, {2, 5, 3, 8}}),
      make("ij->ji", {{3, 4}}),
      make("ij->i", {{3, 4}}),
      make("ij->", {{3, 4}}),
      make("ii->i", {{4, 4}}),
      make("...ii->...i", {{2, 3, 3}}),
      make("ii", {{4, 4}}),
      make("iij,jk->ik", {{3, 3, 2}, {2, 4}}),
      make("...ij,...jk->...ik", {{2, 1, 3, 4}, {5, 4, 2}}),
      make("i...,i...->...", {{3, 2}, {3, 1}}),
      make("ij,jk,kl->il", {{3, 4}, {4, 2}, {2, 5}}),
      make("ij,kl,jk,i->l", {{3, 4}, {2, 5}, {4, 2}, {3}}),
      make("i,j->ij", {{3}, {4}}),
      make("ba", {{3, 4}}),
      make("ij,jk->ik", {{3, 0}, {0, 2}}),
      make(",->", {{}, {}}),
  };
  cases[0].inputs[1].constant = true;
  return cases;
}

}  // namespace

std::vector<OpKind> op_einsum() { return {{"Einsum", import_einsum, einsum_cases}}; }

}  // namespace lipscope

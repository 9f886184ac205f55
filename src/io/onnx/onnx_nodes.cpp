// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/checkpoint.h"
#include "io/onnx/onnx_import.h"
#include "io/onnx/onnx_tensor.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

using onnx::AttributeProto;

// Files older than IR version 3 leave the type out; it shows in what is set.
int attribute_type(const AttributeProto& a) {
  if (a.type() != AttributeProto::UNDEFINED) return a.type();
  if (a.has_f()) return AttributeProto::FLOAT;
  if (a.has_i()) return AttributeProto::INT;
  if (a.has_s()) return AttributeProto::STRING;
  if (a.has_t()) return AttributeProto::TENSOR;
  if (a.has_g()) return AttributeProto::GRAPH;
  if (a.floats_size() > 0) return AttributeProto::FLOATS;
  if (a.strings_size() > 0) return AttributeProto::STRINGS;
  return AttributeProto::INTS;
}

void read_attribute(const AttributeProto& a, const std::string& folder, FileNode& node) {
  switch (attribute_type(a)) {
    case AttributeProto::FLOAT: node.attributes[a.name()] = double{a.f()}; return;
    case AttributeProto::INT: node.attributes[a.name()] = Index{a.i()}; return;
    case AttributeProto::STRING: node.attributes[a.name()] = a.s(); return;
    case AttributeProto::INTS:
      node.attributes[a.name()] = std::vector<Index>(a.ints().begin(), a.ints().end());
      return;
    case AttributeProto::FLOATS:
      node.attributes[a.name()] = std::vector<double>(a.floats().begin(), a.floats().end());
      return;
    case AttributeProto::STRINGS:
      node.attributes[a.name()] = std::vector<std::string>(a.strings().begin(), a.strings().end());
      return;
    case AttributeProto::TENSOR: try { node.attributes[a.name()] = to_tensor(a.t(), folder);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kUnsupported) throw;
        node.refused = fmt::format("operator {}: {}", node.op, error.what());
      }
      return;
    case AttributeProto::GRAPH:
    case AttributeProto::GRAPHS:
      node.refused =
          fmt::format("operator {}: control flow is not supported; export without it", node.op);
      return;
    default:
      node.refused = fmt::format("operator {}: attribute '{}' has a type that is not supported",
                                 node.op, a.name());
  }
}

FileNode read_node(const PlainNode& plain, const std::string& folder) {
  const onnx::NodeProto& proto = plain.proto;
  FileNode node;
  node.opset = plain.opset;
  node.op = proto.op_type();
  node.domain = proto.domain() == "ai.onnx" ? "" : proto.domain();
  node.name = node_label(proto);
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  // An absent optional input at the end may be written as an empty name.
  while (!node.inputs.empty() && node.inputs.back().empty()) node.inputs.pop_back();
  node.refused = plain.refused;
  if (!node.domain.empty() && node.refused.empty())
    node.refused = fmt::format("operator {}.{} is not supported", node.domain, node.op);
  if (node.domain.empty() && plain.opset == kNoOpset && node.refused.empty())
    throw Error(ErrorCode::kBadFile,
                fmt::format("node '{}': the file does not say of which opset operator {} is",
                            node.name, node.op));
  std::set<std::string> seen;
  for (const auto& attribute : proto.attribute()) {
    try {
      if (!seen.insert(attribute.name()).second)
        throw Error(ErrorCode::kBadFile, "there are two of this name");
      if (!attribute.ref_attr_name().empty())
        throw Error(ErrorCode::kBadFile, "refers to an attribute of a function and stands in none");
      read_attribute(attribute, folder, node);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("node '{}': attribute '{}': {}", node.name,
                                            attribute.name(), error.what()));
    }
  }
  return node;
}

// Nodes of one name, by what they make.
void tell_apart(std::vector<FileNode>& nodes) {
  std::map<std::string, int> count;
  for (const FileNode& node : nodes) ++count[node.name];
  for (FileNode& node : nodes) {
    if (count[node.name] == 1) continue;
    if (!node.outputs.empty()) node.name += "(" + node.outputs[0] + ")";
    while (count.contains(node.name)) node.name += "'";
    count[node.name] = 1;
  }
}

}  // namespace

std::vector<FileNode> read_nodes(const std::vector<PlainNode>& plain, const std::string& folder) {
  std::vector<FileNode> nodes;
  std::map<std::string, std::size_t> producer;
  for (const PlainNode& node : plain) {
    const onnx::NodeProto& proto = node.proto;
    checkpoint(1000.0 * (1 + proto.input_size() + proto.output_size()));
    for (const std::string& output : proto.output()) {
      if (!output.empty() && !producer.emplace(output, nodes.size()).second) {
        throw Error(ErrorCode::kBadFile,
                    fmt::format("node '{}': value '{}' is made twice", node_label(proto), output));
      }
    }
    nodes.push_back(read_node(node, folder));
  }
  tell_apart(nodes);
  // Kahn's algorithm, keeping the file's order where it is already right.
  std::vector<std::size_t> waiting(nodes.size());
  std::vector<std::vector<std::size_t>> users(nodes.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    std::set<std::size_t> makers;
    for (const std::string& input : nodes[n].inputs) {
      if (const auto found = producer.find(input); found != producer.end())
        makers.insert(found->second);
    }
    waiting[n] = makers.size();
    for (const std::size_t maker : makers) users[maker].push_back(n);
  }
  std::set<std::size_t> ready;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (waiting[n] == 0) ready.insert(n);
  }
  std::vector<FileNode> sorted;
  while (!ready.empty()) {
    const std::size_t n = *ready.begin();
    ready.erase(ready.begin());
    for (const std::size_t user : users[n]) {
      if (--waiting[user] == 0) ready.insert(user);
    }
    sorted.push_back(std::move(nodes[n]));
  }
  if (sorted.size() == nodes.size()) return sorted;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (waiting[n] > 0) {
      throw Error(
          ErrorCode::kBadFile,
          fmt::format("node '{}' depends on its own output: the graph has a cycle", nodes[n].name));
    }
  }
  return sorted;
}

}  // namespace lipscope

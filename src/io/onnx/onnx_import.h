// SPDX-License-Identifier: Apache-2.0
// From the parsed file to a Graph, node by node through the operators' own importers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/onnx/onnx_functions.h"
#include "io/onnx/onnx_proto.h"
#include "lipscope/model.h"
#include "ops/onnx_node.h"

namespace lipscope {

// A node of the file without protobuf.
struct FileNode {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;
  Attributes attributes;
  int opset = 1;
  std::string refused;  // why it can never be imported (subgraphs, foreign domain); empty otherwise
};

struct OnnxModel::Parts {
  std::string name, producer, sha256;
  int opset = 1;
  std::vector<ModelInput> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, std::shared_ptr<const Tensor>> initializers;
  std::vector<FileNode> nodes;          // in topological order
  std::vector<std::string> data_files;  // see OnnxModel
};

// Nodes sorted so that each comes after what it uses; kBadFile for a cycle, a value made twice or
// one nobody makes.
[[nodiscard]] std::vector<FileNode> read_nodes(const std::vector<PlainNode>& plain,
                                               const std::string& folder);

// Why a node cannot be imported whatever the inputs of the model; empty when it may be.
[[nodiscard]] std::string refusal(const OnnxModel::Parts& parts, const FileNode& node);

[[nodiscard]] Graph import_graph(const OnnxModel::Parts& parts, const GraphOptions& options);
[[nodiscard]] std::vector<NodeSurvey> survey_nodes(const OnnxModel::Parts& parts,
                                                   const GraphOptions& options);

}  // namespace lipscope

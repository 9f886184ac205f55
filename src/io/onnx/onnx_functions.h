// SPDX-License-Identifier: Apache-2.0
// Functions that a file defines itself.
#pragma once

#include <string>
#include <vector>

#include "io/onnx/onnx_proto.h"

namespace lipscope {

constexpr int kNoOpset = 0;
// The newest one whose operators are known to mean what src/ops computes. It brought Swish; what
// opsets 22 to 24 changed about older operators are the types they take.
constexpr int kNewestOpset = 24;

// A node that calls no function of the file, under the opset it was written for.
struct PlainNode {
  onnx::NodeProto proto;
  int opset = kNoOpset;
  std::string refused;  // a call that cannot be followed, and why; empty otherwise
};

// The opset of the default domain, kNoOpset where it is not in the list; kBadFile where there are
// two, kUnsupported beyond the newest.
[[nodiscard]] int default_opset(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);

// That of the model's nodes: files that are older than opsets have the first.
[[nodiscard]] int model_opset(const onnx::ModelProto& model);

// The nodes of the model's graph with every call replaced by the body of the function. Values and
// nodes of a body are named after the call. Takes the nodes out of the model.
[[nodiscard]] std::vector<PlainNode> take_nodes(onnx::ModelProto& model);

// A name for messages: the node's own, or what it is and makes.
[[nodiscard]] std::string node_label(const onnx::NodeProto& node);

}  // namespace lipscope

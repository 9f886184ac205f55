// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/shrink.h"

#include <set>

#include "tests/oracle/evaluator.h"

namespace oracle {
namespace {

void rename(onnx::GraphProto& graph, const std::string& from, const std::string& to) {
  for (auto& node : *graph.mutable_node()) {
    for (auto& name : *node.mutable_input()) {
      if (name == from) name = to;
    }
  }
  for (auto& output : *graph.mutable_output()) {
    if (output.name() == from) output.set_name(to);
  }
}

// Nodes and tensors that reach no output.
void trim(onnx::GraphProto& graph) {
  std::set<std::string> wanted;
  for (const auto& output : graph.output()) wanted.insert(output.name());
  for (int k = graph.node_size(); k-- > 0;) {
    const auto& node = graph.node(k);
    bool reaches = false;
    for (const auto& name : node.output()) reaches = reaches || wanted.contains(name);
    if (reaches) {
      wanted.insert(node.input().begin(), node.input().end());
    } else {
      graph.mutable_node()->DeleteSubrange(k, 1);
    }
  }
  for (int k = graph.initializer_size(); k-- > 0;) {
    if (!wanted.contains(graph.initializer(k).name())) {
      graph.mutable_initializer()->DeleteSubrange(k, 1);
    }
  }
}

// Whether it has a value at some point; the declared output becomes what that is.
bool settle(RandomGraph& candidate) {
  Evaluator::Values inputs;
  for (const auto& input : candidate.model.graph().input()) {
    Dims dims;
    for (const auto& d : input.type().tensor_type().shape().dim()) dims.push_back(d.dim_value());
    Array array(input.type().tensor_type().elem_type(), dims);
    for (Number& e : array.entries) e = Number(1);
    inputs.emplace(input.name(), std::move(array));
  }
  try {
    const Array value = Evaluator(candidate.model).run(inputs).at(0);
    if (!is_floating(value.type)) return false;
    auto* tensor =
        candidate.model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(value.type);
    tensor->mutable_shape()->clear_dim();
    for (const Index d : value.dims) tensor->mutable_shape()->add_dim()->set_dim_value(d);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// All smaller graphs that differ in one node.
std::vector<RandomGraph> candidates(const RandomGraph& graph, int k) {
  std::vector<RandomGraph> list;
  const onnx::NodeProto& node = graph.model.graph().node(k);
  for (const std::string& name : node.input()) {
    if (name.empty()) continue;
    RandomGraph smaller = graph;
    rename(*smaller.model.mutable_graph(), node.output(0), name);
    list.push_back(std::move(smaller));
  }
  if (node.input_size() == 0) return list;
  // As a constant, if it is one and exactly of its type.
  try {
    onnx::ModelProto part = graph.model;
    part.mutable_graph()->mutable_output(0)->set_name(node.output(0));
    const Array value = Evaluator(part).run({}).at(0);
    for (const Number& e : value.entries) {
      if (is_floating(value.type) && compare(rounded(value.type, e), e) != 0) return list;
    }
    RandomGraph smaller = graph;
    auto* tensor = smaller.model.mutable_graph()->add_initializer();
    *tensor = make_tensor(value);
    tensor->set_name("k" + node.output(0));
    rename(*smaller.model.mutable_graph(), node.output(0), tensor->name());
    list.push_back(std::move(smaller));
  } catch (const std::exception&) {
  }
  return list;
}

}  // namespace

RandomGraph shrunk(RandomGraph graph, const std::function<bool(const RandomGraph&)>& fails) {
  for (bool changed = true; changed;) {
    changed = false;
    for (int k = graph.model.graph().node_size(); k-- > 0;) {
      if (k >= graph.model.graph().node_size()) continue;
      for (RandomGraph& smaller : candidates(graph, k)) {
        trim(*smaller.model.mutable_graph());
        if (smaller.model.graph().node_size() == 0 || !settle(smaller) || !fails(smaller)) continue;
        graph = std::move(smaller);
        changed = true;
        break;
      }
    }
  }
  return graph;
}

}  // namespace oracle

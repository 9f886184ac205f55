// SPDX-License-Identifier: Apache-2.0
// The worked examples of the operators as graphs of one node.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "lipscope/graph.h"
#include "ops/kind.h"

namespace lipscope::kits {

struct Built {
  Graph graph;
  std::vector<Tensor> inputs;  // of the graph, in order
};

// What becomes of constants: a node with nothing but constants is folded.
enum class Constants { kStay, kAreInputs };

// A graph of one node. All outputs of the operator are outputs of the graph.
inline Built build(const OpKind& kind, const OpCase& op_case,
                   Constants constants = Constants::kStay) {
  Built built;
  GraphBuilder builder;
  std::vector<ValueId> ids;
  std::vector<std::optional<NodeInput>> infos;
  for (const OpCase::Input& input : op_case.inputs) {
    const std::string name = "x" + std::to_string(ids.size());
    const ValueType type{input.value.type(), input.value.shape()};
    if (input.constant && constants == Constants::kStay) {
      ids.push_back(builder.constant(name, input.value));
    } else {
      ids.push_back(builder.input(name, type));
      built.inputs.push_back(input.value);
    }
    infos.push_back(NodeInput::like(input.value, input.constant));
  }
  const OnnxNode node(std::string(kind.name), op_case.opset, op_case.attributes, infos,
                      std::vector<bool>(static_cast<std::size_t>(op_case.outputs), true));
  const Imported imported = kind.import(node);
  EXPECT_TRUE(node.unread().empty()) << "unread attribute " << node.unread().front();
  if (imported.constant) {
    built.graph = builder.finish({builder.constant("y", *imported.constant)});
    return built;
  }
  std::vector<ValueId> uses;
  for (const Index k : imported.uses) uses.push_back(ids[static_cast<std::size_t>(k)]);
  const auto outputs = builder.add(imported.op, uses, "node");
  built.graph = builder.finish(outputs);
  return built;
}

inline std::vector<const OpKind*> all_kinds() {
  std::vector<const OpKind*> kinds;
  for (const OpKind& kind : op_kinds()) kinds.push_back(&kind);
  return kinds;
}

inline double uniform(Rng& rng) { return std::uniform_real_distribution<double>(0, 1)(rng); }

inline Box around(const Tensor& centre, double width) {
  Box box{centre, centre};
  if (!is_floating(centre.type())) return box;
  for (double& entry : box.lower.doubles()) entry -= width / 2;
  for (double& entry : box.upper.doubles()) entry += width / 2;
  return box;
}

}  // namespace lipscope::kits

// SPDX-License-Identifier: Apache-2.0
// A network as a value: nodes in topological order, never edited after GraphBuilder::finish().
//
//   GraphBuilder builder;
//   ValueId x = builder.input("x", {ElementType::kFloat32, {1, 4}});
//   auto y = builder.add(op, {x}, "relu");
//   Graph graph = builder.finish({y[0]});
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lipscope/constant.h"
#include "lipscope/op.h"

namespace lipscope {

struct ValueId {
  std::uint32_t index = 0;
  friend auto operator<=>(const ValueId&, const ValueId&) = default;
};

struct Value {
  std::string name;
  ValueType type;
  // Null for a value that depends on an input, and for integers computed from constants that are
  // not known well enough to tell them.
  std::shared_ptr<const Constant> constant = nullptr;
};

struct Node {
  std::shared_ptr<const Op> op;
  std::vector<ValueId> inputs, outputs;
  std::string name;
};

// Immutable; safe to share between threads.
class Graph {
 public:
  [[nodiscard]] std::span<const Node> nodes() const noexcept { return nodes_; }
  [[nodiscard]] std::span<const Value> values() const noexcept { return values_; }
  [[nodiscard]] const Value& value(ValueId id) const { return values_.at(id.index); }
  [[nodiscard]] std::span<const ValueId> inputs() const noexcept { return inputs_; }
  [[nodiscard]] std::span<const ValueId> outputs() const noexcept { return outputs_; }
  // Entries of the floating constants that reach an output.
  [[nodiscard]] Index parameter_count() const;

 private:
  friend class GraphBuilder;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<ValueId> inputs_, outputs_;
};

// Nodes whose inputs are all constants are computed at once and become constants: in float64, with
// a box for what rounding may have hidden. Integers are decided for every number in the boxes, by
// rational arithmetic where need be; a node whose integers are not decided stays a node.
class GraphBuilder {
 public:
  ValueId input(std::string name, ValueType type);
  ValueId constant(std::string name, Tensor exact);
  ValueId constant(std::string name, std::shared_ptr<const Constant> value);
  // A copy of a constant of another graph.
  ValueId constant(const Value& value) { return constant(value.name, value.constant); }
  std::vector<ValueId> add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs,
                           std::string name, std::vector<std::string> output_names = {});
  [[nodiscard]] const Value& value(ValueId id) const { return graph_.value(id); }
  // Drops nodes and values that reach no output; inputs always stay.
  [[nodiscard]] Graph finish(std::vector<ValueId> outputs);

 private:
  Graph graph_;
};

// A pass is a function from graph to graph with the same inputs and outputs.
struct Pass {
  std::string_view name, summary;
  Graph (*run)(const Graph&);
};

// Copies `graph` node by node. `rewrite` sees each node and may return the outputs of a replacement
// it has added to the builder; an empty vector copies the node as it is. `mapped` gives the copy of
// any earlier value. A replacement has to have the types and shapes of the node's outputs; one that
// has not is dropped and the node copied.
using MappedValue = std::function<ValueId(ValueId)>;
using NodeRewrite =
    std::function<std::vector<ValueId>(const Node&, const MappedValue& mapped, GraphBuilder&)>;
[[nodiscard]] Graph rewrite_nodes(const Graph& graph, const NodeRewrite& rewrite);

}  // namespace lipscope

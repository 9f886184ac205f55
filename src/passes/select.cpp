// SPDX-License-Identifier: Apache-2.0
#include "lipscope/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "graph/copier.h"
#include "lipscope/error.h"
#include "ops/integer/cast.h"
#include "ops/rows/softmax_rows.h"
#include "passes/add_node.h"
#include "passes/integers_as_reals.h"
#include "passes/merge_affine.h"
#include "passes/token_ids.h"

namespace lipscope {
namespace {

// By its name or by that of what it makes: a value may have the name of another node.
const Node& find_node(const Graph& graph, const std::string& name, const char* flag) {
  const auto nodes = graph.nodes();
  auto found = std::ranges::find(nodes, name, &Node::name);
  if (found == nodes.end()) {
    found = std::ranges::find_if(
        nodes, [&](const Node& node) { return graph.value(node.outputs[0]).name == name; });
  } else if (std::find_if(found + 1, nodes.end(),
                          [&](const Node& node) { return node.name == name; }) != nodes.end()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} '{}': there are several such nodes", flag, name));
  }
  if (found != nodes.end()) return *found;
  throw Error(
      ErrorCode::kUsage,
      fmt::format("{} '{}': there is no such node; 'lipscope inspect' lists them", flag, name));
}

const Node* maker_of(const Graph& graph, ValueId value) {
  for (const Node& node : graph.nodes()) {
    if (node.outputs[0] == value) return &node;
  }
  return nullptr;
}

// The squash that makes a value, perhaps in another shape.
const Node* squash_behind(const Graph& graph, ValueId value) {
  const Node* node = maker_of(graph, value);
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, node->op->name()) != names.end();
  };
  while (node != nullptr &&
         is_one_of({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"}))
    node = maker_of(graph, node->inputs[0]);
  return node != nullptr && squash_kind(*node->op) ? node : nullptr;
}

// The last value of the function: of the node asked for, or the model's first output; without its
// squash where that is asked for or a margin does not see it.
ValueId last_value(const Graph& graph, const Selection& selection) {
  ValueId last =
      selection.to.empty() ? graph.outputs()[0] : find_node(graph, selection.to, "--to").outputs[0];
  const Node* squash = squash_behind(graph, last);
  if (squash == nullptr) return last;
  const bool unseen = selection.margin && keeps_differences(*squash->op);
  return unseen || selection.logits ? squash->inputs[0] : last;
}

// The node whose output the function starts from; null: the graph's inputs.
const Node* first_node(const Graph& graph, const Selection& selection) {
  if (!selection.from.empty()) return &find_node(graph, selection.from, "--from");
  return embedding_of_ids(graph, last_value(graph, selection));
}

// A value that may be any of its type: a constant in a box without ends, or integers that depend
// on one and are therefore not known.
ValueId free_value(GraphBuilder& builder, const Value& value) {
  const bool real = is_floating(value.type.type);
  const Tensor zero =
      Tensor::zeros(real ? value.type.type : ElementType::kFloat64, value.type.shape);
  Box box{zero, zero};
  std::ranges::fill(box.lower.doubles(), -std::numeric_limits<double>::infinity());
  std::ranges::fill(box.upper.doubles(), std::numeric_limits<double>::infinity());
  const ValueId any =
      builder.constant(value.name, std::make_shared<const Constant>(zero, std::move(box)));
  if (real) return any;
  const ValueId like = builder.constant("type", Tensor::zeros(value.type.type, {1}));
  return add_node(builder, "CastLike", {any, like}, value.name, {}, 15, {value.name});
}

class Cut {
 public:
  Cut(const Graph& graph, const Selection& selection)
      : graph_(graph), selection_(selection), first_(first_node(graph, selection)) {}

  Selected run() {
    add_sources();
    copier_.add_rest();
    const ValueId last = last_value(graph_, selection_);
    if (!copier_.has(last)) {
      throw Error(
          ErrorCode::kUsage,
          fmt::format("'{}' cannot be computed from --from alone; choose a node on every path "
                      "from the input",
                      graph_.value(last).name));
    }
    const ValueId end = with_row(copier_[last]);
    Selected selected{builder_.finish({end}), first_ != nullptr ? first_->name : ""};
    if (selected.graph.inputs().empty())
      throw Error(ErrorCode::kUnsupported,
                  "the model has no input, or only ones whose values are stored in it: nothing "
                  "moves");
    if (const std::string obstacle = integer_obstacle(selected.graph); !obstacle.empty())
      throw Error(ErrorCode::kUnsupported, obstacle);
    return selected;
  }

 private:
  void add_sources() {
    if (!selection_.wrt.empty() && std::ranges::none_of(graph_.inputs(), [&](ValueId id) {
          return graph_.value(id).name == selection_.wrt;
        })) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("--wrt '{}': there is no such input", selection_.wrt));
    }
    copier_.constants();
    if (first_ != nullptr) return copier_.input(first_->outputs[0]);
    for (const ValueId id : graph_.inputs()) {
      const Value& value = graph_.value(id);
      const bool moves = selection_.wrt.empty() || value.name == selection_.wrt;
      copier_.set(id, moves ? builder_.input(value.name, value.type) : free_value(builder_, value));
    }
  }

  // Rows that pick an entry of the flattened output, or subtract two.
  ValueId with_row(ValueId end) {
    if (!selection_.output && !selection_.margin) return end;
    const Index size = element_count(builder_.value(end).type.shape);
    std::vector<double> row(static_cast<std::size_t>(size));
    const auto at = [&](Index i, double weight) {
      if (i < 0 || i >= size)
        throw Error(
            ErrorCode::kUsage,
            fmt::format("output {} does not exist: the output has {} entries, counted from 0", i,
                        size));
      row[static_cast<std::size_t>(i)] += weight;
    };
    if (selection_.output) at(*selection_.output, 1);
    if (selection_.margin) {
      at(selection_.margin->first, 1);
      at(selection_.margin->second, -1);
    }
    const ElementType type = builder_.value(end).type.type;
    const ValueId weights =
        builder_.constant("row/weights", Tensor(type, {size, 1}, std::move(row)));
    return add_node(builder_, "MatMul", {reshaped(builder_, end, {1, size}), weights}, "row");
  }

  const Graph& graph_;
  const Selection& selection_;
  const Node* first_;
  GraphBuilder builder_;
  GraphCopier copier_{graph_, builder_};
};

// Whether the function starts at an embedding that is looked up by other integers than those named.
bool starts_at_ids(const Graph& graph, const Selection& selection,
                   const std::vector<std::string>& names) {
  const Node* first = selection.from.empty() ? first_node(graph, selection) : nullptr;
  if (first == nullptr) return false;
  std::vector<bool> ids(graph.values().size());
  for (const ValueId id : graph.inputs())
    ids[id.index] = std::ranges::find(names, graph.value(id).name) == names.end();
  for (const Node& node : graph.nodes()) {
    const bool any = std::ranges::any_of(node.inputs, [&](ValueId id) { return ids[id.index]; });
    for (const ValueId id : node.outputs) ids[id.index] = any;
  }
  return ids[first->inputs[1].index];
}

RealInputs real_inputs(const Graph& graph, const Selection& selection) {
  RealInputs real = integers_as_reals(graph);
  if (real.names.empty() || !starts_at_ids(graph, selection, real.names)) return real;
  return {graph, {}};
}

// Nodes of `part` that are casts of `whole` to a type that has not all the values.
std::vector<std::string> narrowing_casts(const Graph& whole, const Graph& part) {
  std::vector<std::string> names;
  for (const Node& node : whole.nodes()) {
    const auto types = as_cast_to_real(*node.op);
    if (!types || !loses_values(*types)) continue;
    const bool kept =
        std::ranges::any_of(part.nodes(), [&](const Node& n) { return n.name == node.name; });
    if (kept) names.push_back(node.name);
  }
  return names;
}

}  // namespace

const Node* final_squash(const Graph& graph) { return squash_behind(graph, graph.outputs()[0]); }

std::optional<SquashKind> squash_kind(const Op& op) {
  if (op.name() == "Sigmoid") return SquashKind::kSigmoid;
  const SoftmaxRows* rows = op.softmax_rows();
  if (rows == nullptr) return std::nullopt;
  return rows->result() == SoftmaxResult::kProbabilities ? SquashKind::kSoftmax
                                                         : SquashKind::kLogSoftmax;
}

bool keeps_order(const Op& squash) {
  return squash_kind(squash) == SquashKind::kSigmoid || single_softmax(squash).has_value();
}

RealFunction real_function(const Graph& graph) {
  RealInputs real = real_inputs(graph, {});
  std::vector<std::string> casts = narrowing_casts(graph, real.graph);
  return {std::move(real.graph), {std::move(real.names), std::move(casts)}};
}

Selected select(const Graph& graph, const Selection& selection) {
  const RealInputs real = real_inputs(graph, selection);
  Selected selected = Cut(real.graph, selection).run();
  for (const ValueId id : selected.graph.inputs()) {
    const std::string& name = selected.graph.value(id).name;
    if (std::ranges::find(real.names, name) != real.names.end())
      selected.conventions.integers_as_reals.push_back(name);
  }
  selected.conventions.casts_as_identity = narrowing_casts(graph, selected.graph);
  selected.graph = merge_affine(selected.graph);
  return selected;
}

}  // namespace lipscope

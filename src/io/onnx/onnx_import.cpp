// SPDX-License-Identifier: Apache-2.0
#include "io/onnx/onnx_import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/checkpoint.h"
#include "base/memory_budget.h"
#include "lipscope/error.h"
#include "ops/kind.h"
#include "ops/training.h"

namespace lipscope {
namespace {

// An input whose value has to be known before the graph can be built.
struct BindFirst {
  std::string input;
};

constexpr const char* kUndecided =
    "depends on the rounding of constants that are computed in the graph; store its result";

constexpr double kWorkPerImport = 1000;  // operations per node and name

class Import {
 public:
  Import(const OnnxModel::Parts& parts, const GraphOptions& options, std::set<std::string> bound)
      : parts_(parts), options_(options), bound_(std::move(bound)) {
    for (const ModelInput& input : parts.inputs) add_input(input);
    for (const auto& [name, tensor] : parts.initializers) {
      ids_[name] = builder_.constant(name, *tensor);
    }
  }

  void add(const FileNode& node) {
    try {
      add_checked(node);
    } catch (const NeedsConstant& needs) {
      bind_or_explain(node, needs);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("node '{}': {}", node.name, error.what()));
    } catch (const std::bad_alloc&) {
      throw Error(ErrorCode::kUnsupported, fmt::format("node '{}': operator {} takes {}", node.name,
                                                       node.op, over_memory_limit()));
    }
  }

  [[nodiscard]] bool knows_inputs(const FileNode& node) const {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& name) {
      return name.empty() || ids_.contains(name);
    });
  }

  [[nodiscard]] std::vector<Shape> output_shapes(const FileNode& node) const {
    std::vector<Shape> shapes;
    for (const std::string& name : node.outputs) {
      if (!name.empty()) shapes.push_back(builder_.value(ids_.at(name)).type.shape);
    }
    return shapes;
  }

  Graph finish() {
    std::vector<ValueId> outputs;
    for (const std::string& name : parts_.outputs) {
      const auto found = ids_.find(name);
      if (found == ids_.end())
        throw Error(ErrorCode::kBadFile, fmt::format("output '{}' is made by no node", name));
      outputs.push_back(found->second);
    }
    Graph graph = builder_.finish(std::move(outputs));
    for (const Node& node : graph.nodes()) refuse_undecided(graph, node);
    return graph;
  }

 private:
  // All nodes at constants are folded, but for those whose integers rounding leaves open.
  static void refuse_undecided(const Graph& graph, const Node& node) {
    if (std::ranges::any_of(node.inputs, [&](ValueId id) { return !graph.value(id).constant; }))
      return;
    throw Error(ErrorCode::kUnsupported,
                fmt::format("node '{}': operator {} {}", node.name, node.op->name(), kUndecided));
  }

  void add_input(const ModelInput& input) {
    if (bound_.contains(input.name)) {
      const Tensor& value = options_.known.at(input.name);
      ids_[input.name] = builder_.constant(input.name, value.cast(input.type));
      return;
    }
    ids_[input.name] = builder_.input(input.name, {input.type, input_shape(input)});
  }

  Shape input_shape(const ModelInput& input) const {
    if (const auto given = options_.shapes.find(input.name); given != options_.shapes.end())
      return given->second;
    if (!input.has_shape) {
      throw Error(ErrorCode::kShape,
                  fmt::format("input '{}' has no declared shape; export the model with shapes or "
                              "give an input array",
                              input.name));
    }
    Shape shape = input.dims;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] >= 0) continue;
      const auto named = options_.dims.find(input.dim_names[i]);
      if (named != options_.dims.end() && !input.dim_names[i].empty()) {
        shape[i] = named->second;
      } else if (i == 0 || options_.guess_dims) {
        shape[i] = 1;
      } else {
        throw Error(
            ErrorCode::kShape,
            fmt::format(
                "input '{}': dimension {}{} is symbolic; give an input array or --dim NAME=SIZE",
                input.name, i,
                input.dim_names[i].empty() ? "" : fmt::format(" ('{}')", input.dim_names[i])));
      }
    }
    return shape;
  }

  void add_checked(const FileNode& node) {
    checkpoint(kWorkPerImport * static_cast<double>(1 + node.inputs.size() + node.outputs.size()));
    const OpKind* kind = find_op_kind(node.op);
    if (!node.refused.empty()) throw Error(ErrorCode::kUnsupported, node.refused);
    if (kind == nullptr) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("operator {} is not supported; 'lipscope ops' lists those that are",
                              node.op));
    }
    const OnnxNode view = describe(node);
    const Imported imported = kind->import(view);
    if (const auto unread = view.unread(); !unread.empty()) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("operator {}: attribute or input '{}' is not supported in opset {}",
                              node.op, unread.front(), node.opset));
    }
    std::vector<ValueId> made;
    if (imported.constant) {
      made.push_back(builder_.constant(node.outputs.empty() ? node.name : node.outputs[0],
                                       *imported.constant));
    } else {
      std::vector<ValueId> inputs;
      for (const Index k : imported.uses)
        inputs.push_back(ids_.at(node.inputs.at(static_cast<std::size_t>(k))));
      made = builder_.add(imported.op, std::move(inputs), node.name, node.outputs);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      if (i >= made.size()) {
        throw Error(ErrorCode::kUnsupported,
                    fmt::format("operator {}: output {} ('{}') is not supported", node.op, i,
                                node.outputs[i]));
      }
      ids_[node.outputs[i]] = made[i];
    }
  }

  OnnxNode describe(const FileNode& node) const {
    std::vector<std::optional<NodeInput>> inputs;
    for (const std::string& name : node.inputs) {
      if (name.empty()) {
        inputs.emplace_back();
        continue;
      }
      const auto found = ids_.find(name);
      if (found == ids_.end())
        throw Error(ErrorCode::kBadFile, fmt::format("value '{}' is made by no node", name));
      const Value& value = builder_.value(found->second);
      inputs.push_back(NodeInput::of(value));
    }
    std::vector<bool> outputs;
    for (const std::string& name : node.outputs) outputs.push_back(!name.empty());
    OnnxNode view(node.op, node.opset, node.attributes, std::move(inputs), std::move(outputs));
    view.ignore({"consumed_inputs"});  // memory hints of opset 1
    return view;
  }

  // The graph inputs a value depends on that are not bound yet.
  std::set<std::string> unbound_sources(const std::string& value) const {
    std::set<std::string> sources, seen, inputs;
    for (const ModelInput& input : parts_.inputs) inputs.insert(input.name);
    std::multimap<std::string_view, const FileNode*> makers;
    for (const FileNode& node : parts_.nodes) {
      checkpoint(kWorkPerImport);
      for (const std::string& output : node.outputs) makers.emplace(output, &node);
    }
    std::vector<std::string> todo{value};
    while (!todo.empty()) {
      const std::string name = todo.back();
      todo.pop_back();
      if (!seen.insert(name).second) continue;
      if (inputs.contains(name) && !bound_.contains(name)) sources.insert(name);
      const auto [first, last] = makers.equal_range(name);
      for (auto maker = first; maker != last; ++maker)
        todo.insert(todo.end(), maker->second->inputs.begin(), maker->second->inputs.end());
    }
    return sources;
  }

  [[noreturn]] void bind_or_explain(const FileNode& node, NeedsConstant needs) const {
    const std::string& value = node.inputs.at(static_cast<std::size_t>(needs.input));
    const std::set<std::string> sources = unbound_sources(value);
    const bool bindable =
        std::all_of(sources.begin(), sources.end(), [&](const std::string& source) {
          return options_.known.contains(source) &&
                 (source == value || !is_floating(options_.known.at(source).type()));
        });
    if (bindable && !sources.empty()) throw BindFirst{*sources.begin()};
    if (sources.empty()) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("node '{}': operator {}: input {} ('{}') {}", node.name, node.op,
                              needs.input, value, kUndecided));
    }
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format(
            "node '{}': operator {}: input {} ('{}') has to be a constant; it depends on input {}",
            node.name, node.op, needs.input, value, fmt::join(unbound_sources(value), ", ")));
  }

  const OnnxModel::Parts& parts_;
  const GraphOptions& options_;
  std::set<std::string> bound_;
  GraphBuilder builder_;
  std::map<std::string, ValueId> ids_;
};

// Runs body(import) with more and more inputs bound to their known values, until no more are
// needed.
template <class Body>
auto with_bound_inputs(const OnnxModel::Parts& parts, const GraphOptions& options, Body&& body) {
  std::set<std::string> bound;
  while (true) {
    try {
      Import import(parts, options, bound);
      return body(import);
    } catch (const BindFirst& first) {
      bound.insert(first.input);
    }
  }
}

// The initializer of this name, or the value of a Constant node.
const Tensor* stored_value(const OnnxModel::Parts& parts, const std::string& name) {
  if (const auto found = parts.initializers.find(name); found != parts.initializers.end())
    return found->second.get();
  charge(static_cast<double>(parts.nodes.size()));
  for (const FileNode& node : parts.nodes) {
    if (node.op != "Constant" || node.outputs.empty() || node.outputs[0] != name) continue;
    const auto value = node.attributes.find("value");
    return value != node.attributes.end() ? std::get_if<Tensor>(&value->second) : nullptr;
  }
  return nullptr;
}

}  // namespace

std::string refusal(const OnnxModel::Parts& parts, const FileNode& node) {
  if (!node.refused.empty()) return node.refused;
  if (find_op_kind(node.op) == nullptr)
    return fmt::format("operator {} is not supported; 'lipscope ops' lists those that are",
                       node.op);
  if (node.op != "Dropout" && node.op != "BatchNormalization") return {};
  std::vector<std::optional<NodeInput>> inputs;
  for (const std::string& name : node.inputs) {
    const Tensor* stored = stored_value(parts, name);
    inputs.emplace_back();
    if (stored != nullptr) {
      inputs.back() =
          NodeInput{{stored->type(), stored->shape()}, std::make_shared<const Constant>(*stored)};
    }
  }
  std::vector<bool> outputs;
  for (const std::string& name : node.outputs) outputs.push_back(!name.empty());
  const std::string why = training_obstacle(
      {node.op, node.opset, node.attributes, std::move(inputs), std::move(outputs)});
  return why.empty() ? why : fmt::format("operator {}: {}", node.op, why);
}

Graph import_graph(const OnnxModel::Parts& parts, const GraphOptions& options) {
  return with_bound_inputs(parts, options, [&](Import& import) {
    for (const FileNode& node : parts.nodes) import.add(node);
    return import.finish();
  });
}

std::vector<NodeSurvey> survey_nodes(const OnnxModel::Parts& parts, const GraphOptions& options) {
  return with_bound_inputs(parts, options, [&](Import& import) {
    std::vector<NodeSurvey> survey;
    for (const FileNode& node : parts.nodes) {
      NodeSurvey row{.name = node.name, .op = node.op};
      if (refusal(parts, node).empty() && !import.knows_inputs(node)) {
        row.supported = true;  // as far as can be seen: it follows something that is not
        survey.push_back(std::move(row));
        continue;
      }
      try {
        import.add(node);
        row.shapes = import.output_shapes(node);
        row.supported = true;
      } catch (const Error& error) {
        row.reason = error.what();
      }
      survey.push_back(std::move(row));
    }
    return survey;
  });
}

}  // namespace lipscope

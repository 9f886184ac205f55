// SPDX-License-Identifier: Apache-2.0
// inspect: what is in a model and what can be done with it.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "attention/find.h"
#include "base/interval.h"
#include "base/printable.h"
#include "bound_json.h"
#include "command.h"
#include "files.h"
#include "lipscope/error.h"
#include "lipscope/gains.h"
#include "model_flags.h"
#include "terminal.h"

namespace lipscope {
namespace {

using namespace app;

struct InspectFlags {
  ModelFlags model;
};

// Either the graph, or for a model that cannot be used the survey of its nodes and the reason.
struct Inspection {
  OnnxModel model;
  std::optional<Graph> graph;
  std::vector<NodeSurvey> survey;
  std::string reason;
  std::map<std::string, std::vector<double>> gains;  // by norm pair, one per node of the graph
  std::vector<AttentionBlock> attention;
};

const char* const kNorms[] = {"1:1", "2:2", "inf:inf"};

Inspection look(const InspectFlags& flags) {
  Inspection result{.model = read_model(flags.model.path), .graph = {}, .survey = {}, .reason = {}};
  GraphOptions options = flags.model.options();
  options.guess_dims = true;
  try {
    result.graph = result.model.graph(options);
    for (const char* norms : kNorms)
      result.gains[norms] = node_gains(*result.graph, parse_norms(norms));
    result.attention = find_attention(*result.graph);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    result.reason = error.what();
    result.survey = result.model.survey(options);
  }
  return result;
}

Json declared_inputs(const OnnxModel& model) {
  Json list = Json::array();
  for (const ModelInput& input : model.inputs()) {
    Json shape = Json::array();
    for (std::size_t i = 0; i < input.dims.size(); ++i) {
      if (input.dims[i] >= 0) {
        shape.push_back(input.dims[i]);
      } else {
        shape.push_back(input.dim_names[i].empty() ? "?" : input.dim_names[i]);
      }
    }
    list.push_back({{"name", input.name}, {"shape", shape}, {"type", to_string(input.type)}});
  }
  return list;
}

// The scale of the products, or nothing where entries have different ones.
Json scale_json(const AttentionBlock& block) {
  return block.scale ? Json(midpoint(*block.scale)) : Json(nullptr);
}

Json blocks_json(const Inspection& seen) {
  Json list = Json::array();
  for (const AttentionBlock& block : seen.attention) {
    Json sources = Json::array();
    for (const ValueId id : block.sources) sources.push_back(seen.graph->value(id).name);
    list.push_back({{"node", block.node},
                    {"kind", to_string(block.kind)},
                    {"heads", block.heads},
                    {"rows", block.rows},
                    {"columns", block.columns},
                    {"key_width", block.key_width},
                    {"value_width", block.value_width},
                    {"scale", scale_json(block)},
                    {"mask", block.causal   ? "causal"
                             : block.masked ? "yes"
                                            : "no"},
                    {"sources", std::move(sources)},
                    {"output", seen.graph->value(block.output).name},
                    {"norm", block.norm},
                    {"residual", block.residual},
                    {"mlp", block.mlp}});
  }
  return list;
}

std::string blocks_text(const Inspection& seen) {
  if (seen.attention.empty()) return {};
  std::vector<std::vector<std::string>> rows{
      {"attention", "kind", "heads", "rows", "keys", "widths", "mask", "around it"}};
  for (const AttentionBlock& block : seen.attention) {
    std::string around = block.norm;
    if (block.residual) around += around.empty() ? "residual" : ", residual";
    if (!block.mlp.empty()) around += ", MLP with " + block.mlp;
    rows.push_back({block.node, std::string(to_string(block.kind)), fmt::format("{}", block.heads),
                    fmt::format("{}", block.rows), fmt::format("{}", block.columns),
                    fmt::format("{}, {}", block.key_width, block.value_width),
                    block.causal   ? "causal"
                    : block.masked ? "yes"
                                   : "no",
                    around});
  }
  return "\n" + format_table(rows);
}

Json inspect_document(const Inspection& seen) {
  Json document{{"schema", "lipscope.inspect/1"},
                {"model",
                 {{"file", seen.model.name()},
                  {"sha256", seen.model.sha256()},
                  {"opset", seen.model.opset()},
                  {"producer", seen.model.producer()}}},
                {"inputs", declared_inputs(seen.model)}};
  document["outputs"] = Json::array();
  document["parameters"] = nullptr;
  document["supported"] = seen.graph.has_value();
  Json nodes = Json::array();
  if (seen.graph) {
    document["outputs"] = describe_values(*seen.graph, seen.graph->outputs());
    document["parameters"] = seen.graph->parameter_count();
    for (std::size_t n = 0; n < seen.graph->nodes().size(); ++n) {
      const Node& node = seen.graph->nodes()[n];
      Json gain = Json::object();
      for (const auto& [norms, values] : seen.gains) {
        gain[norms] = to_json(Bound{values[n], Guarantee::kProved, "gain"});
      }
      nodes.push_back({{"name", node.name},
                       {"op", node.op->name()},
                       {"shape", seen.graph->value(node.outputs[0]).type.shape},
                       {"gain", std::move(gain)},
                       {"supported", true}});
    }
  } else {
    for (const std::string& name : seen.model.output_names())
      document["outputs"].push_back({{"name", name}});
    document["reason"] = seen.reason;
    for (const NodeSurvey& row : seen.survey) {
      Json node{{"name", row.name},
                {"op", row.op},
                {"shape", nullptr},
                {"gain", Json::object()},
                {"supported", row.supported}};
      if (!row.shapes.empty()) node["shape"] = row.shapes[0];
      if (!row.reason.empty()) node["reason"] = row.reason;
      nodes.push_back(std::move(node));
    }
  }
  document["nodes"] = std::move(nodes);
  document["attention"] = blocks_json(seen);
  return document;
}

std::string heading(const Inspection& seen) {
  const OnnxModel& model = seen.model;
  std::string text =
      fmt::format("{}  opset {}{}\n", one_line(model.name()), model.opset(),
                  model.producer().empty() ? "" : ", from " + one_line(model.producer()));
  if (!seen.graph) return text;
  const Graph& graph = *seen.graph;
  for (const ValueId id : graph.inputs()) {
    const Value& value = graph.value(id);
    text += fmt::format("  input   {}  {} {}\n", one_line(value.name),
                        format_dims(value.type.shape), to_string(value.type.type));
  }
  for (const ValueId id : graph.outputs()) {
    const Value& value = graph.value(id);
    text += fmt::format("  output  {}  {} {}\n", one_line(value.name),
                        format_dims(value.type.shape), to_string(value.type.type));
  }
  return text + fmt::format("  {} nodes, {} parameters\n", graph.nodes().size(),
                            group_digits(graph.parameter_count()));
}

std::string inspect_text(const Inspection& seen) {
  std::string text = heading(seen) + "\n";
  std::vector<std::vector<std::string>> rows;
  if (seen.graph) {
    rows.push_back({"node", "operator", "output", "gain l1", "l2", "linf"});
    for (std::size_t n = 0; n < seen.graph->nodes().size(); ++n) {
      const Node& node = seen.graph->nodes()[n];
      rows.push_back({node.name, std::string(node.op->name()),
                      format_dims(seen.graph->value(node.outputs[0]).type.shape)});
      for (const char* norms : kNorms) rows.back().push_back(format_up(seen.gains.at(norms)[n], 5));
    }
    return text + format_table(rows) + blocks_text(seen);
  }
  rows.push_back({"node", "operator", "output", "supported"});
  for (const NodeSurvey& row : seen.survey) {
    rows.push_back({row.name, row.op, row.shapes.empty() ? "?" : format_dims(row.shapes[0]),
                    row.supported ? "yes" : "no: " + row.reason});
  }
  return text + format_table(rows) + "\nnot supported as a whole: " + one_line(seen.reason) + "\n";
}

Action declare_inspect(CLI::App& app, const Common&) {
  auto flags = std::make_shared<InspectFlags>();
  flags->model.declare(app);
  return [flags]() -> Result {
    auto seen = std::make_shared<Inspection>(look(*flags));
    return {.document = [seen] { return inspect_document(*seen); },
            .text = [seen] { return inspect_text(*seen); }};
  };
}

}  // namespace

std::vector<Command> command_inspect() {
  return {
      {.name = "inspect",
       .summary = "operators, shapes and parameters of a model, and what is supported",
       .examples = "  lipscope inspect net.onnx\n  lipscope inspect net.onnx --dim seq=16 --json",
       .declare = declare_inspect}};
}

}  // namespace lipscope

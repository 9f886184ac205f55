// SPDX-License-Identifier: Apache-2.0
// inspect: what is in a model and what can be done with it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>

#include "attention/find.h"
#include "base/checkpoint.h"
#include "base/interval.h"
#include "base/memory_budget.h"
#include "base/printable.h"
#include "bound_json.h"
#include "command.h"
#include "files.h"
#include "gain_table.h"
#include "interrupt.h"
#include "lipscope/error.h"
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
  std::unique_ptr<const Graph> graph;
  std::vector<NodeSurvey> survey;
  std::string reason;
  std::optional<NodeGains> gains;
  std::vector<AttentionBlock> attention;
  Outcome outcome = Outcome::kFinished;
  bool shown = false;  // heading and table have been written as they came
};

// Where the user says nothing, better gains are looked for so long; those that cost little are
// there before.
constexpr double kSecondsOfRefining = 0.45;

double end_of_refining(const Common& common) {
  const RunClock& clock = *common.clock;
  if (common.time || common.effort) return clock.limit();
  return std::min(clock.limit(), clock.now() + kSecondsOfRefining);
}

std::string heading(const Inspection& seen);

void show(const std::string& text) {
  const std::string plain = plain_text(text);
  if (std::fwrite(plain.data(), 1, plain.size(), stdout) != plain.size() ||
      std::fflush(stdout) != 0)
    throw Error(ErrorCode::kBadFile, "the result cannot be written to standard output");
}

// On a terminal a line for each node as soon as it is known.
void find_gains(Inspection& seen, const Common& common) {
  seen.gains.emplace(*seen.graph,
                     std::vector{parse_norms("1"), parse_norms("2"), parse_norms("inf")});
  seen.shown = !common.json && common.output.empty() && isatty(STDOUT_FILENO) == 1;
  const GainTable table(*seen.graph, *seen.gains);
  if (seen.shown) show(heading(seen) + "\n" + table.heading());
  const double deadline = end_of_refining(common);
  seen.gains->glance(*common.clock, common.clock->limit());
  const bool complete = seen.gains->find(*common.clock, deadline, [&](std::size_t node) {
    if (seen.shown) show(table.line(node));
  });
  if (!complete) seen.outcome = common.cut_short();
}

void find_blocks(Inspection& seen, const Common& common) {
  try {
    const RunScope scope(*common.clock, common.clock->limit());
    seen.attention = find_attention(*seen.graph);
  } catch (const Stopped&) {
    relieve_memory();
    seen.outcome = common.cut_short();
  } catch (const std::bad_alloc&) {
    relieve_memory();
    seen.outcome = common.cut_short();
  }
}

Inspection look(const InspectFlags& flags, const Common& common) {
  Inspection result{.model = read_model(flags.model.path),
                    .graph = {},
                    .survey = {},
                    .reason = {},
                    .gains = {},
                    .attention = {}};
  GraphOptions options = flags.model.options();
  options.guess_dims = true;
  try {
    result.graph = std::make_unique<const Graph>(result.model.graph(options));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    result.reason = error.what();
    result.survey = result.model.survey(options);
  }
  if (!result.graph) return result;
  find_blocks(result, common);
  find_gains(result, common);
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

Json gain_json(const NodeGain& gain) {
  if (gain.state == NodeGain::State::kOpen) return nullptr;
  const bool loose = gain.state == NodeGain::State::kLoose;
  return to_json(Bound{gain.value, Guarantee::kProved, loose ? "loose gain" : "gain"});
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
  document["supported"] = seen.graph != nullptr;
  Json nodes = Json::array();
  if (seen.graph) {
    document["outputs"] = describe_values(*seen.graph, seen.graph->outputs());
    document["parameters"] = seen.graph->parameter_count();
    for (std::size_t n = 0; n < seen.graph->nodes().size(); ++n) {
      const Node& node = seen.graph->nodes()[n];
      Json gain = Json::object();
      for (std::size_t j = 0; j < seen.gains->norms().size(); ++j)
        gain[seen.gains->norms()[j].name()] = gain_json(seen.gains->at(n, j));
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
  document["outcome"] = to_string(seen.outcome);
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
  if (seen.graph) {
    const GainTable table(*seen.graph, *seen.gains);
    std::string text;
    if (!seen.shown) {
      text = heading(seen) + "\n" + table.heading();
      for (std::size_t n = 0; n < seen.graph->nodes().size(); ++n) text += table.line(n);
    }
    return text + table.legend() + blocks_text(seen);
  }
  std::vector<std::vector<std::string>> rows{{"node", "operator", "output", "supported"}};
  for (const NodeSurvey& row : seen.survey) {
    rows.push_back({row.name, row.op, row.shapes.empty() ? "?" : format_dims(row.shapes[0]),
                    row.supported ? "yes" : "no: " + row.reason});
  }
  return heading(seen) + "\n" + format_table(rows) +
         "\nnot supported as a whole: " + one_line(seen.reason) + "\n";
}

Action declare_inspect(CLI::App& app, const Common& common) {
  auto flags = std::make_shared<InspectFlags>();
  flags->model.declare(app);
  return [flags, &common]() -> Result {
    auto seen = std::make_shared<Inspection>(look(*flags, common));
    return {.document = [seen] { return inspect_document(*seen); },
            .text = [seen] { return inspect_text(*seen); },
            .exit_code = seen->outcome == Outcome::kInterrupted ? kExitInterrupted : 0};
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

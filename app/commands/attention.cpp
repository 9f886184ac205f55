// SPDX-License-Identifier: Apache-2.0
// attention: how sensitive the attention of a transformer is at an input, head by head.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "about_file.h"
#include "attention/study.h"
#include "base/printable.h"
#include "base/rounding.h"
#include "bound_json.h"
#include "command.h"
#include "conventions.h"
#include "files.h"
#include "lipscope/error.h"
#include "lipscope/samples.h"
#include "lipscope/select.h"
#include "model_flags.h"
#include "number_flags.h"
#include "passes/integers_as_reals.h"
#include "terminal.h"

namespace lipscope {
namespace {

using namespace app;

struct AttentionFlags {
  ModelFlags model;
  std::string input, scale = "1", ball = "2";
  std::vector<std::string> norms;
  std::vector<double> epsilons;
  std::optional<double> radius;
  Index sample = 0, rank = 10;
};

struct AttentionAnswer {
  std::string file, sha256;
  AttentionQuery question;
  AttentionReport report;
  Conventions conventions;
  Index sample = 0;
  Outcome outcome = Outcome::kFinished;
  double seconds = 0;
};

AttentionQuery read_attention_question(const AttentionFlags& flags, const Common& common) {
  AttentionQuery question;
  question.epsilons = flags.epsilons;
  question.seed = common.seed;
  question.jasmin_rank = flags.rank;
  for (const std::string& text : flags.norms) {
    const NormPair pair = parse_norm_flag(text);
    if (std::ranges::find(question.norms, pair) == question.norms.end())
      question.norms.push_back(pair);
  }
  if (question.norms.empty()) question.norms = {parse_norms("2"), parse_norms("inf")};
  question.ball = flags.ball == "token-max" ? TokenNorm::kTokenMax : TokenNorm::kFrobenius;
  if (flags.radius && !(*flags.radius >= 0 && std::isfinite(*flags.radius)))
    throw Error(ErrorCode::kUsage, fmt::format("--radius {}: not a radius", *flags.radius));
  question.radius = flags.radius;
  return question;
}

// One of the samples of each input.
std::vector<Tensor> one_sample(const Samples& samples, const Graph& graph, Index which,
                               const std::string& path) {
  if (which >= samples.count) {
    throw Error(ErrorCode::kUsage, fmt::format("--sample {}: {} holds {} samples, counted from 0",
                                               which, path, samples.count));
  }
  std::vector<Tensor> inputs;
  const std::vector<Tensor> all = samples.for_graph(graph);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ValueType& type = graph.value(graph.inputs()[i]).type;
    const Index size = element_count(type.shape);
    Tensor tensor = Tensor::zeros(type.type, type.shape);
    for (Index e = 0; e < size; ++e) {
      const Index at = (which * size + e) % std::max<Index>(1, all[i].size());
      if (is_floating(type.type)) {
        tensor.doubles()[static_cast<std::size_t>(e)] = all[i].at(at);
        if (!std::isfinite(all[i].at(at)))
          throw Error(ErrorCode::kBadFile, fmt::format("{}: holds {}", path, all[i].at(at)));
      } else {
        tensor.ints()[static_cast<std::size_t>(e)] = all[i].ints()[static_cast<std::size_t>(at)];
      }
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

AttentionAnswer answer_attention(const AttentionFlags& flags, const Common& common) {
  const auto start = std::chrono::steady_clock::now();
  const auto used = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const OnnxModel model = read_model(flags.model.path);
  model.require_supported();
  AttentionAnswer result{.file = model.name(), .sha256 = model.sha256(), .sample = flags.sample};
  result.question = read_attention_question(flags, common);
  Samples samples = match_samples(model, read_arrays(flags.input), parse_scale(flags.scale));
  for (const auto& [name, size] : flags.model.options().dims) samples.options.dims[name] = size;
  RealFunction real = real_function(model.graph(samples.options));
  const Graph& graph = real.graph;
  result.conventions = real.conventions;
  require_unscaled(result.conventions, parse_scale(flags.scale));
  result.report = about_file(flags.input, [&] {
    const auto inputs = one_sample(samples, graph, flags.sample, flags.input);
    return study_attention(graph, inputs, result.question, flags.model.path, *common.clock);
  });
  if (const std::string obstacle = integer_obstacle(graph);
      result.report.from.empty() && !obstacle.empty())
    throw Error(ErrorCode::kUnsupported, fmt::format("{}: {}", model.name(), obstacle));
  if (!result.report.complete) result.outcome = common.cut_short();
  result.seconds = used();
  return result;
}

Json local_json(const std::optional<Bound>& lower, const std::optional<Bound>& upper) {
  return {{"lower", to_json(lower)}, {"upper", to_json(upper)}};
}

Json head_json(const HeadReport& head, const BlockReport& block, const AttentionQuery& question) {
  Json softmax = Json::object(), bounds = Json::array(), empirical = Json::array();
  for (std::size_t j = 0; j < question.norms.size(); ++j) {
    const SoftmaxSummary& s = head.softmax[j];
    softmax[question.norms[j].name()] = {{"max", s.max},
                                         {"median", s.median},
                                         {"share_above_0.4", s.share_above},
                                         {"max_lower", s.max_lower}};
  }
  for (const AttentionBound& bound : head.bounds) {
    bounds.push_back({{"name", bound.name},
                      {"norm", bound.norm},
                      {"value", bound.value},
                      {"guarantee", to_string(bound.guarantee)},
                      {"theorem", bound.theorem}});
  }
  for (const EmpiricalConstant& cell : head.empirical) {
    empirical.push_back({{"epsilon", cell.epsilon},
                         {"norm", cell.norms.name()},
                         {"random_max", cell.random_max},
                         {"directed_max", cell.directed_max}});
  }
  Json document{{"head", head.head},
                {"rows", block.block.rows},
                {"score_spread", head.score_spread},
                {"entropy", head.entropy},
                {"share_near_half", head.near_half},
                {"jasmin", {{"g_1", head.jasmin}, {"ratio", head.jasmin_ratio}}},
                {"softmax", std::move(softmax)},
                {"local", local_json(head.lower, head.upper)},
                {"bounds", std::move(bounds)}};
  if (!empirical.empty()) document["empirical"] = std::move(empirical);
  if (question.radius) document["ball"] = local_json(head.ball_lower, head.ball_upper);
  return document;
}

Json attention_document(const AttentionAnswer& result) {
  const AttentionQuery& question = result.question;
  const AttentionReport& report = result.report;
  Json blocks = Json::array();
  for (std::size_t b = 0; b < report.blocks.size(); ++b) {
    const BlockReport& block = report.blocks[b];
    Json heads = Json::array();
    for (const HeadReport& head : block.heads) heads.push_back(head_json(head, block, question));
    Json one{{"node", block.block.node},
             {"layer", b},
             {"kind", to_string(block.block.kind)},
             {"heads", std::move(heads)},
             {"local", local_json(block.lower, block.upper)}};
    if (!block.outside.empty()) one["outside"] = block.outside;
    if (question.radius) one["ball"] = local_json(block.ball_lower, block.ball_upper);
    blocks.push_back(std::move(one));
  }
  Json model{{"file", result.file},
             {"sha256", result.sha256},
             {"local", local_json(report.lower, report.upper)},
             {"seconds", report.model_seconds}};
  if (question.radius) model["ball"] = local_json(report.ball_lower, report.ball_upper);
  Json document{{"schema", "lipscope.attention/1"},
                {"sample", result.sample},
                {"from", report.from.empty() ? Json(nullptr) : Json(report.from)},
                {"blocks", std::move(blocks)},
                {"model", std::move(model)},
                {"outcome", to_string(result.outcome)},
                {"seconds", result.seconds}};
  add_conventions(result.conventions, document);
  document["radius"] = question.radius ? Json(*question.radius) : Json(nullptr);
  document["ball_norm"] = question.ball == TokenNorm::kFrobenius ? "2" : "token-max";
  return document;
}

std::string side_text(const std::optional<Bound>& bound, bool lower) {
  if (!bound) return "-";
  const std::string text = lower ? format_down(bound->value, 6) : format_up(bound->value, 6);
  return bound->guarantee == Guarantee::kProved
             ? text
             : fmt::format("{} ({})", text, to_string(bound->guarantee));
}

std::string attention_text(const AttentionAnswer& result) {
  const AttentionReport& report = result.report;
  const AttentionQuery& question = result.question;
  std::string text = fmt::format("{}  {} attention block{}", one_line(result.file),
                                 report.blocks.size(), report.blocks.size() == 1 ? "" : "s");
  if (!report.from.empty()) text += fmt::format(", from the output of {}", one_line(report.from));
  text += "\n" + conventions_text(result.conventions);
  if (question.radius) {
    text += fmt::format(
        "lower, upper: l2 -> l2 at the input; ball: radius {} in {}\n", *question.radius,
        question.ball == TokenNorm::kFrobenius ? "l2 of all tokens" : "the largest l2 of a token");
  }
  if (result.outcome != Outcome::kFinished)
    text += result.outcome == Outcome::kInterrupted ? "interrupted: not all heads were examined\n"
            : result.outcome == Outcome::kMemoryLimit
                ? "memory limit reached (--memory): not everything was examined\n"
                : "time limit reached, not all heads were examined; raise --time for more\n";
  std::vector<std::vector<std::string>> table{
      {"layer", "head", "spread", "entropy", "near 1/2", "softmax", "lower", "upper"}};
  if (question.radius) table[0].insert(table[0].end(), {"ball lower", "ball upper"});
  const auto add_ball = [&](const auto& part) {
    if (!question.radius) return;
    table.back().push_back(side_text(part.ball_lower, true));
    table.back().push_back(side_text(part.ball_upper, false));
  };
  for (std::size_t b = 0; b < report.blocks.size(); ++b) {
    const BlockReport& block = report.blocks[b];
    for (const HeadReport& head : block.heads) {
      table.push_back(
          {fmt::format("{}", b), fmt::format("{}", head.head),
           fmt::format("{:.4g}", head.score_spread), fmt::format("{:.4g}", head.entropy),
           fmt::format("{:.0f} %", 100 * head.near_half), format_up(head.softmax[0].max, 4),
           side_text(head.lower, true), side_text(head.upper, false)});
      add_ball(head);
    }
    table.push_back({fmt::format("{}", b), "all", "", "", "", "", side_text(block.lower, true),
                     side_text(block.upper, false)});
    add_ball(block);
  }
  table.push_back(
      {"model", "", "", "", "", "", side_text(report.lower, true), side_text(report.upper, false)});
  add_ball(report);
  text += format_table(table);
  for (std::size_t b = 0; b < report.blocks.size(); ++b) {
    const BlockReport& block = report.blocks[b];
    if (!block.outside.empty())
      text += fmt::format("\nlayer {}: outside the theorems: {}\n", b, one_line(block.outside));
    if (block.heads.empty() || block.heads[0].bounds.empty()) continue;
    std::vector<std::vector<std::string>> bounds{{"bound", "norm", "guarantee", "theorem"}};
    for (const HeadReport& head : block.heads)
      bounds[0].push_back(fmt::format("head {}", head.head));
    for (std::size_t k = 0; k < block.heads[0].bounds.size(); ++k) {
      const AttentionBound& bound = block.heads[0].bounds[k];
      bounds.push_back(
          {bound.name, bound.norm, std::string(to_string(bound.guarantee)), bound.theorem});
      for (const HeadReport& head : block.heads) {
        bounds.back().push_back(k < head.bounds.size() ? format_up(head.bounds[k].value, 5) : "-");
      }
    }
    text += fmt::format("\nlayer {} ({})\n", b, one_line(block.block.node)) + format_table(bounds);
  }
  return text;
}

Action declare_attention(CLI::App& app, const Common& common) {
  auto flags = std::make_shared<AttentionFlags>();
  flags->model.declare(app);
  reads_file(
      app.add_option("--input", flags->input, "input array, or .npz with input_0, input_1, ..."))
      ->type_name("FILE")
      ->required();
  takes_whole(
      app.add_option("--sample", flags->sample, "which sample of the input, counted from 0"))
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  takes_numbers(
      app.add_option("--radius", flags->radius, "bounds on a ball around the tokens, too"))
      ->type_name("R");
  app.add_option("--ball", flags->ball,
                 "norm of the ball: 2 (all tokens together) or token-max (each token)")
      ->check(CLI::IsMember({"2", "token-max"}))
      ->capture_default_str();
  app.add_option("--norm", flags->norms, "of the softmax rows: P or P:Q; may be repeated")
      ->allow_extra_args(false)
      ->type_name("P[:Q]");
  takes_numbers(
      app.add_option("--empirical", flags->epsilons,
                     "largest quotients of the softmax rows for perturbations of these sizes"))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("EPS,...");
  takes_whole(app.add_option("--rank", flags->rank, "k of the JaSMin ratio g_1 / g_k"))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--scale", flags->scale, "multiply the input by this, for example 1/255")
      ->type_name("F");
  return [flags, &common]() -> Result {
    auto result = std::make_shared<AttentionAnswer>(answer_attention(*flags, common));
    return {.document = [result] { return attention_document(*result); },
            .text = [result] { return attention_text(*result); },
            .exit_code = result->outcome == Outcome::kInterrupted ? 130 : 0};
  };
}

}  // namespace

std::vector<Command> command_attention() {
  return {{.name = "attention",
           .summary = "local constants of every attention head, block and the model at an input",
           .examples = "  lipscope attention vit.onnx --input image.npy\n"
                       "  lipscope attention vit.onnx --input image.npy --radius 0.01 --json",
           .declare = declare_attention}};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// bound: the bracket of the Lipschitz constant.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/checkpoint.h"
#include "base/memory_budget.h"
#include "base/printable.h"
#include "base/rounding.h"
#include "bound_json.h"
#include "command.h"
#include "conventions.h"
#include "files.h"
#include "lipscope/error.h"
#include "number_flags.h"
#include "output_file.h"
#include "progress.h"
#include "proof/document.h"
#include "query_flags.h"
#include "terminal.h"

namespace lipscope {
namespace {

using namespace app;

struct BoundFlags {
  QueryFlags query;
  std::optional<double> target_ratio;
  std::vector<std::string> methods;
  bool explain = false;
  std::string certificate;
};

struct BoundFindings {
  Question question;
  std::vector<RadiusAnswer> series;  // by growing radius; without a ball the only answer
  std::vector<std::pair<std::pair<Index, Index>, Answer>> margins;
  bool missed_target = false;
  double seconds = 0;

  [[nodiscard]] const Answer& main() const { return series.back().answer; }
  [[nodiscard]] std::optional<double> largest_radius() const {
    return question.radii.empty() ? std::nullopt : std::optional(question.radii.back());
  }
};

bool says_nothing(const Answer& answer) {
  const auto upper = best_upper(answer.bracket);
  return !best_lower(answer.bracket) && !(upper && std::isfinite(upper->value)) &&
         answer.no_bound.empty();
}

BoundFindings find_brackets(const BoundFlags& flags, const Common& common) {
  const auto start = std::chrono::steady_clock::now();
  BoundFindings found{.question = read_question(flags.query), .series = {}, .margins = {}};
  Progress progress(common);
  RunContext context{.clock = common.clock,
                     .seed = common.seed,
                     .progress = [&](const ProgressEvent& event) { progress.show(event); }};
  const auto left = [&] { return std::chrono::duration<double>(common.seconds_left()); };
  Budget budget{.time = left(),
                .target_ratio = flags.target_ratio.value_or(1 + 1e-6),
                .until_little_gain = !common.time && !common.effort && !flags.target_ratio,
                .methods = flags.methods};
  budget.time = (found.question.margins.empty() ? 1 : 0.5) * left();
  const std::optional<double> largest = found.largest_radius();
  const Query query = found.question.query(largest);
  if (largest) {
    found.series = find_series(query, found.question.radii, budget, context);
  } else {
    found.series.push_back({.answer = find_bracket(query, budget, context)});
  }
  if (found.main().outcome == Outcome::kMemoryLimit && says_nothing(found.main()))
    throw MemoryLimitReached();
  for (std::size_t i = 0; i < found.question.margins.size(); ++i) {
    Question pair = found.question;
    Selection row;
    row.margin = found.question.margins[i];
    pair.selected = select(found.question.selected.graph, row);
    pair.norms.out = pair.norms.in;
    budget.time = left() / static_cast<double>(found.question.margins.size() - i);
    found.margins.emplace_back(*row.margin, find_bracket(pair.query(largest), budget, context));
  }
  const auto ratio = found.main().bracket.ratio();
  found.missed_target = flags.target_ratio && !(ratio && *ratio <= *flags.target_ratio);
  found.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return found;
}

std::string certificate_of(const BoundFindings& found) {
  return write_certificate(found.question.statement(found.largest_radius()), found.main());
}

Json method_rows(const Answer& answer) {
  Json rows = Json::array();
  for (const MethodReport& report : answer.methods) {
    Json row{{"method", report.method}, {"side", report.side}};
    row["value"] = report.bound ? Json(report.bound->value) : Json(nullptr);
    row["guarantee"] = report.bound ? Json(to_string(report.bound->guarantee)) : Json(nullptr);
    row["seconds"] = report.seconds;
    if (report.gap) row["gap"] = *report.gap;
    if (!report.note.empty()) row["note"] = report.note;
    if (!report.skipped.empty()) row["skipped"] = report.skipped;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json witness_json(const Answer& answer) {
  if (!answer.witness) return nullptr;
  std::vector<double> direction;
  for (std::size_t i = 0; i < answer.witness->x.size(); ++i)
    direction.push_back(answer.witness->y[i] - answer.witness->x[i]);
  return {{"x", answer.witness->x},
          {"direction", direction},
          {"y", answer.witness->y},
          {"quotient", answer.witnessed->value}};
}

Json bound_document(const BoundFindings& found) {
  const Answer& answer = found.main();
  const Graph& graph = found.question.selected.graph;
  Json query = statement_to_json(found.question.statement(found.largest_radius()));
  add_conventions(found.question.selected.conventions, query);
  Json document{{"schema", "lipscope.bound/1"},
                {"model",
                 {{"file", found.question.model.name()},
                  {"sha256", found.question.model.sha256()},
                  {"inputs", describe_values(graph, graph.inputs())},
                  {"outputs", describe_values(graph, graph.outputs())},
                  {"parameters", graph.parameter_count()}}},
                {"query", std::move(query)},
                {"lower", to_json(best_lower(answer.bracket))},
                {"upper", to_json(best_upper(answer.bracket))}};
  const auto ratio = answer.bracket.ratio();
  document["ratio"] = ratio ? Json(*ratio) : Json(nullptr);
  document["outcome"] = to_string(answer.outcome);
  document["witness"] = witness_json(answer);
  document["series"] = Json::array();
  if (found.series.size() > 1) {
    for (const RadiusAnswer& one : found.series) {
      document["series"].push_back({{"radius", one.radius},
                                    {"lower", to_json(best_lower(one.bracket))},
                                    {"upper", to_json(best_upper(one.bracket))}});
    }
  }
  if (!found.margins.empty()) {
    document["margins"] = Json::array();
    for (const auto& [pair, one] : found.margins) {
      document["margins"].push_back({{"margin", {pair.first, pair.second}},
                                     {"lower", to_json(best_lower(one.bracket))},
                                     {"upper", to_json(best_upper(one.bracket))}});
    }
  }
  if (!answer.no_bound.empty()) document["no_bound"] = answer.no_bound;
  if (!answer.little_gain.empty()) document["little_gain"] = answer.little_gain;
  document["methods"] = method_rows(answer);
  document["seconds"] = found.seconds;
  return document;
}

std::string bracket_line(const Bracket& bracket) {
  constexpr int kDigits = 6;
  const auto lower = best_lower(bracket), upper = best_upper(bracket);
  const bool guess = upper && upper->guarantee == Guarantee::kEstimate;
  std::string text = fmt::format("{} <= L <= {}", lower ? format_down(lower->value, kDigits) : "0",
                                 upper && !guess ? format_up(upper->value, kDigits) : "inf");
  if (const auto ratio = bracket.ratio(); ratio && std::isfinite(*ratio))
    text += fmt::format("   ratio {}", format_up(*ratio, 4));
  if (lower && lower->guarantee != Guarantee::kProved)
    text += fmt::format("   (lower: {}, not proved)", to_string(lower->guarantee));
  if (guess) text += fmt::format("   (estimate of L: {})", format_up(upper->value, kDigits));
  return text;
}

std::string domain_text(const Question& question, std::optional<double> radius) {
  std::string text;
  if (question.domain.ball)
    text =
        fmt::format("{}ball of radius {} in l{}", radius.value_or(0) == 0 ? "one point, the " : "",
                    radius.value_or(0), question.domain.ball->norm.name());
  if (question.domain.box) text += text.empty() ? "box" : ", inside a box";
  return text.empty() ? "everywhere" : text;
}

std::string bound_text(const BoundFindings& found, const BoundFlags& flags, const Common& common) {
  const Question& question = found.question;
  const Graph& graph = question.selected.graph;
  const Answer& answer = found.main();
  Index outputs = element_count(graph.value(graph.outputs()[0]).type.shape), inputs = 0;
  for (const ValueId id : graph.inputs()) inputs += element_count(graph.value(id).type.shape);
  std::string text =
      fmt::format("{}  {} -> {}, {} nodes, {} parameters\n", one_line(question.model.name()),
                  inputs, outputs, graph.nodes().size(), group_digits(graph.parameter_count()));
  if (!question.selected.from.empty())
    text += fmt::format("from the output of node '{}'\n", one_line(question.selected.from));
  text += conventions_text(question.selected.conventions);
  text += fmt::format("l{} -> l{}, {}\n", question.norms.in.name(), question.norms.out.name(),
                      domain_text(question, found.largest_radius()));
  if (found.series.size() > 1) {
    for (const RadiusAnswer& one : found.series)
      text += fmt::format("  radius {:<8} {}\n", one.radius, bracket_line(one.bracket));
  } else {
    text += fmt::format("  {}\n", bracket_line(answer.bracket));
  }
  for (const auto& [pair, one] : found.margins) {
    text += fmt::format("  margin {},{}  {}\n", pair.first, pair.second, bracket_line(one.bracket));
  }
  std::vector<std::vector<std::string>> rows;
  for (const MethodReport& report : answer.methods) {
    if (!report.skipped.empty()) {
      if (flags.explain) rows.push_back({report.side, report.method, "skipped: " + report.skipped});
      continue;
    }
    std::string value = "nothing found";
    if (report.bound)
      value = report.side == "lower" ? format_down(report.bound->value, 6)
                                     : format_up(report.bound->value, 6);
    rows.push_back({report.side, report.method, value,
                    report.bound ? std::string(to_string(report.bound->guarantee)) : "",
                    fmt::format("{:.2f} s", report.seconds), flags.explain ? report.note : ""});
  }
  text += format_table(rows);
  if (!answer.no_bound.empty())
    text += fmt::format("  no finite upper bound: {}\n", one_line(answer.no_bound));
  if (answer.outcome == Outcome::kTimeLimit)
    text += fmt::format("  {}\n", common.effort ? "the work was done; raise --effort for more"
                                                : "time limit reached; raise --time for more");
  if (answer.outcome == Outcome::kMemoryLimit)
    text += "  memory limit reached; raise --memory for more\n";
  if (answer.outcome == Outcome::kLittleGain)
    text += fmt::format("  more time would bring little: {}; --time goes on\n", answer.little_gain);
  if (answer.outcome == Outcome::kInterrupted)
    text += "  interrupted; this is the best found so far\n";
  return text;
}

int exit_code(const BoundFindings& found) {
  if (found.main().outcome == Outcome::kInterrupted) return 130;
  return found.missed_target ? 5 : 0;
}

Action declare_bound(CLI::App& app, const Common& common) {
  auto flags = std::make_shared<BoundFlags>();
  flags->query.declare(app);
  takes_numbers(app.add_option("--target-ratio", flags->target_ratio,
                               "stop when upper/lower is at most this"))
      ->check(CLI::Range(1.0, 1e9));
  app.add_option("--methods", flags->methods, "only these methods")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("a,b");
  writes_file(app.add_option("--certificate", flags->certificate, "write the proof to this file"))
      ->type_name("FILE");
  app.add_flag("--explain", flags->explain, "say why each method ran or did not");
  return [flags, &common]() -> Result {
    auto found = std::make_shared<BoundFindings>(find_brackets(*flags, common));
    const Unstoppable finish;
    if (!flags->certificate.empty()) write_file(flags->certificate, certificate_of(*found));
    return {.document = [found] { return bound_document(*found); },
            .text = [found, flags, &common] { return bound_text(*found, *flags, common); },
            .exit_code = exit_code(*found)};
  };
}

}  // namespace

std::vector<Command> command_bound() {
  return {{.name = "bound",
           .summary = "a bracket for the Lipschitz constant: a lower bound with a witness, a "
                      "proved upper bound",
           .examples =
               "  lipscope bound net.onnx\n"
               "  lipscope bound net.onnx --norm inf --at x.npy --radius 0.01,0.1 --margin 3,5",
           .declare = declare_bound}};
}

}  // namespace lipscope

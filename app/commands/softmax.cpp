// SPDX-License-Identifier: Apache-2.0
// softmax: how sensitive the softmax of each row of logits is.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "bound_json.h"
#include "command.h"
#include "files.h"
#include "interrupt.h"
#include "lipscope/arrays.h"
#include "lipscope/error.h"
#include "number_flags.h"
#include "softmax/study.h"
#include "terminal.h"

namespace lipscope {
namespace {

using namespace app;

struct SoftmaxFlags {
  std::string file, scale = "1";
  double lambda = 1;
  std::vector<std::string> norms;
  std::vector<double> epsilons;
  Index directions = 10;
  bool summary = false;
};

struct Answered {
  SoftmaxQuestion question;
  SoftmaxReport report;
  Outcome outcome = Outcome::kFinished;
};

Tensor read_logits(const SoftmaxFlags& flags) {
  const double scale = parse_scale(flags.scale);
  Tensor logits = read_array(flags.file).cast(ElementType::kFloat64);
  if (scale != 1) {
    for (double& x : logits.doubles()) {
      if (x != -std::numeric_limits<double>::infinity()) x *= scale;  // a masked entry stays masked
    }
  }
  return logits;
}

Answered answer(const SoftmaxFlags& flags, const Common& common) {
  Answered result;
  SoftmaxQuestion& question = result.question;
  question.lambda = flags.lambda;
  question.epsilons = flags.epsilons;
  question.directions = flags.directions;
  question.seed = common.seed;
  question.rows = !flags.summary;
  for (const std::string& text : flags.norms) {
    const NormPair pair = parse_norm_flag(text);
    if (std::find(question.norms.begin(), question.norms.end(), pair) == question.norms.end())
      question.norms.push_back(pair);
  }
  if (question.norms.empty()) question.norms.push_back(parse_norms("2"));
  if (!std::isfinite(flags.lambda) || flags.lambda == 0)
    throw Error(ErrorCode::kUsage,
                fmt::format("--lambda {}: has to be finite and not 0", flags.lambda));
  const Tensor logits = read_logits(flags);
  // The document of the rows is written within the time, too.
  constexpr double kSecondsPerNumber = 1.2e-6;
  const bool writes_rows = common.json && !flags.summary && !common.effort;
  const auto numbers = static_cast<double>(logits.shape().empty() ? 1 : logits.shape().back() + 20);
  const double per_row = writes_rows ? kSecondsPerNumber * numbers : 0;
  const auto should_stop = [&](Index rows) {
    return common.clock->passed(common.clock->limit() - per_row * static_cast<double>(rows));
  };
  result.report = study_softmax(logits, question, flags.file, should_stop);
  if (!result.report.complete) {
    result.outcome = common.cut_short();
  }
  return result;
}

Json row_json(const SoftmaxRowReport& row, const SoftmaxQuestion& question) {
  Json norms = Json::object();
  for (std::size_t j = 0; j < row.norms.size(); ++j) {
    norms[question.norms[j].name()] = {{"lower", proved(row.norms[j].lower, row.norms[j].how)},
                                       {"upper", proved(row.norms[j].upper, row.norms[j].how)}};
  }
  return {{"row", row.row},
          {"norms", std::move(norms)},
          {"log_sum_exp", midpoint(row.log_sum_exp)},
          {"probabilities", row.probabilities}};
}

Json softmax_document(const Answered& result) {
  const SoftmaxQuestion& question = result.question;
  const SoftmaxReport& report = result.report;
  Json global = Json::object(), summary = Json::object();
  Json local = Json::array(), empirical = Json::array();
  for (std::size_t j = 0; j < question.norms.size(); ++j) {
    const std::string name = question.norms[j].name();
    const SoftmaxSummary& s = report.summary[j];
    global[name] = proved(report.global[j].hi, "softmax-3");
    summary[name] = {{"max", s.max},
                     {"median", s.median},
                     {"share_above_0.4", s.share_above},
                     {"max_lower", s.max_lower},
                     {"worst_row", s.worst_row}};
  }
  for (const SoftmaxRowReport& row : report.local) local.push_back(row_json(row, question));
  for (const EmpiricalConstant& cell : report.empirical) {
    empirical.push_back({{"epsilon", cell.epsilon},
                         {"norm", cell.norms.name()},
                         {"random_max", cell.random_max},
                         {"directed_max", cell.directed_max}});
  }
  return {{"schema", "lipscope.softmax/1"},
          {"lambda", question.lambda},
          {"rows", report.rows},
          {"rows_done", report.rows_done},
          {"complete", report.complete},
          {"outcome", to_string(result.outcome)},
          {"global", std::move(global)},
          {"local", std::move(local)},
          {"summary", std::move(summary)},
          {"empirical", std::move(empirical)}};
}

std::string bracket_text(const NormBracket& b) {
  const std::string lower = format_down(b.lower, 6), upper = format_up(b.upper, 6);
  return b.upper <= b.lower * (1 + 1e-9) ? upper : lower + " .. " + upper;
}

// What is missing, if anything is.
std::string remark(const Answered& result) {
  if (result.outcome == Outcome::kFinished) return "";
  const SoftmaxReport& report = result.report;
  const bool all = report.rows_done == report.rows;
  return fmt::format(
      "{}: {} of {} rows{}; the rest of this is about these alone\n",
      result.outcome == Outcome::kInterrupted ? "interrupted" : "time limit reached (--time)",
      group_digits(report.rows_done), group_digits(report.rows),
      all ? ", not all perturbations" : "");
}

std::string softmax_text(const Answered& result, const SoftmaxFlags& flags) {
  constexpr std::size_t kShown = 20;
  const SoftmaxQuestion& question = result.question;
  const SoftmaxReport& report = result.report;
  std::string text = fmt::format("{}  {} row{} of {}, lambda {}\n", one_line(flags.file),
                                 group_digits(report.rows), report.rows == 1 ? "" : "s",
                                 report.columns, question.lambda);
  text += remark(result);
  std::vector<std::vector<std::string>> table{
      {"norm", "anywhere", "largest", "median", "above 0.4", "worst row"}};
  for (std::size_t j = 0; j < question.norms.size(); ++j) {
    const SoftmaxSummary& s = report.summary[j];
    table.push_back({question.norms[j].name(), format_up(report.global[j].hi, 6),
                     format_up(s.max, 6), fmt::format("{:.6g}", s.median),
                     fmt::format("{:.1f} %", 100 * s.share_above), fmt::format("{}", s.worst_row)});
  }
  text += format_table(table);
  if (!report.empirical.empty()) {
    text += "\nlargest quotient seen\n";
    table = {{"epsilon", "norm", "random", "worst direction"}};
    for (const EmpiricalConstant& cell : report.empirical) {
      table.push_back({fmt::format("{}", cell.epsilon), cell.norms.name(),
                       fmt::format("{:.6g}", cell.random_max),
                       fmt::format("{:.6g}", cell.directed_max)});
    }
    text += format_table(table);
  }
  if (report.local.empty()) return text;
  text += "\nat each row\n";
  table = {{"row", "log-sum-exp", "top probability"}};
  for (const NormPair& pair : question.norms) table[0].push_back(pair.name());
  for (std::size_t r = 0; r < std::min(kShown, report.local.size()); ++r) {
    const SoftmaxRowReport& row = report.local[r];
    table.push_back({fmt::format("{}", row.row), fmt::format("{:.6g}", midpoint(row.log_sum_exp)),
                     fmt::format("{:.6g}", *std::max_element(row.probabilities.begin(),
                                                             row.probabilities.end()))});
    for (const NormBracket& b : row.norms) table.back().push_back(bracket_text(b));
  }
  text += format_table(table);
  if (report.local.size() > kShown)
    text += fmt::format("... {} rows in all; --json prints them\n", report.rows_done);
  return text;
}

Action declare_softmax(CLI::App& app, const Common& common) {
  auto flags = std::make_shared<SoftmaxFlags>();
  reads_file(
      app.add_option("FILE", flags->file, "rows of logits; file.npz:key for one array of several"))
      ->required();
  takes_numbers(
      app.add_option("--lambda", flags->lambda,
                     "inverse temperature, of either sign; entries -inf are masked whatever it is"))
      ->capture_default_str();
  app.add_option("--norm", flags->norms, "P or P:Q; may be repeated (default 2)")
      ->allow_extra_args(false)
      ->type_name("P[:Q]");
  takes_numbers(
      app.add_option(
          "--empirical", flags->epsilons,
          "largest quotients for perturbations of these sizes, random and along the worst "
          "direction"))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("EPS,...");
  takes_whole(app.add_option("--directions", flags->directions, "random perturbations of each row"))
      ->check(CLI::Range(Index{1}, Index{1000000}))
      ->capture_default_str();
  app.add_option("--scale", flags->scale, "multiply the logits by this, for example 1/8")
      ->type_name("F");
  app.add_flag("--summary", flags->summary, "leave out the rows");
  return [flags, &common]() -> Result {
    auto result = std::make_shared<Answered>(answer(*flags, common));
    return {.document = [result] { return softmax_document(*result); },
            .text = [result, flags] { return softmax_text(*result, *flags); },
            .exit_code = result->outcome == Outcome::kInterrupted ? 130 : 0};
  };
}

}  // namespace

std::vector<Command> command_softmax() {
  return {{.name = "softmax",
           .summary = "how sensitive the softmax of each row of logits is, here and at worst",
           .examples = "  lipscope softmax scores.npz --norm 2 --norm inf --lambda 0.5\n"
                       "  lipscope softmax logits.csv --empirical 0.01,0.1,1 --summary",
           .declare = declare_softmax}};
}

}  // namespace lipscope

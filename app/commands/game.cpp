// SPDX-License-Identifier: Apache-2.0
// game: the equilibrium of an entropy-regularised zero-sum game.
#include "lipscope/game.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/rounding.h"
#include "bound_json.h"
#include "command.h"
#include "files.h"
#include "interrupt.h"
#include "lipscope/arrays.h"
#include "number_flags.h"
#include "terminal.h"

namespace lipscope {
namespace {

using namespace app;

constexpr Index kTraceSteps = 1000;

struct GameFlags {
  std::string file;
  double tau = 0;
  bool trace = false;
};

struct GameFindings {
  Game game;
  Equilibrium equilibrium;
  GameProof proof;
  Contraction contraction;
  std::optional<GameTrace> trace;
  Outcome outcome = Outcome::kFinished;
  double seconds = 0;

  [[nodiscard]] double value() const { return proof.value.lower / 2 + proof.value.upper / 2; }
};

GameFindings find_equilibrium(const GameFlags& flags, const Common& common) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  GameFindings found;
  found.game = make_game(read_array(flags.file), flags.tau, flags.file);
  const GameLimits limits{.should_stop = [&] {
    if (common.is_over()) found.outcome = common.cut_short();
    return found.outcome != Outcome::kFinished;
  }};
  found.equilibrium = solve_game(found.game, limits);
  found.proof = prove_game(found.game, found.equilibrium.x, found.equilibrium.y);
  found.contraction = contraction_of(found.game);
  if (flags.trace) {
    found.trace =
        trace_game(found.game, found.equilibrium, found.contraction.factor, kTraceSteps, limits);
  }
  found.seconds = seconds();
  return found;
}

Json trace_document(const GameTrace& trace) {
  Json steps = Json::array();
  for (const TraceStep& step : trace.steps) {
    steps.push_back({{"iteration", step.iteration},
                     {"error", step.error},
                     {"a_priori", step.a_priori},
                     {"a_posteriori", step.a_posteriori}});
  }
  return {{"damping", trace.damping},
          {"rate", trace.rate},
          {"bounds", trace.contracts ? "contraction" : "descent"},
          {"guarantee", to_string(Guarantee::kReal)},
          {"steps", std::move(steps)}};
}

Json game_document(const GameFindings& found) {
  const GameProof& proof = found.proof;
  Json document{{"schema", "lipscope.game/1"},
                {"tau", found.game.tau},
                {"rows", found.game.rows},
                {"cols", found.game.cols},
                {"value", found.value()},
                {"value_bounds",
                 {{"lower", proved(proof.value.lower, "best-response")},
                  {"upper", proved(proof.value.upper, "best-response")}}},
                {"x", found.equilibrium.x},
                {"y", found.equilibrium.y},
                {"gap", proved(proof.gap.upper, "divergence")},
                {"iterations", found.equilibrium.iterations},
                {"method", found.equilibrium.method},
                {"converged", found.equilibrium.converged},
                {"contraction",
                 {{"factor", proved(found.contraction.factor, "oscillation")},
                  {"norm", "1"},
                  {"tau_guaranteed", found.contraction.tau_guaranteed}}},
                {"distance", proved(proof.distance, "pinsker")},
                {"distance_x", proved(proof.distance_x, "pinsker")},
                {"distance_y", proved(proof.distance_y, "pinsker")},
                {"exploitability", proved(proof.exploitability.upper, "best-response")},
                {"nash_value",
                 {{"lower", proved(proof.nash_value.lower, "best-response")},
                  {"upper", proved(proof.nash_value.upper, "best-response")}}},
                {"outcome", to_string(found.outcome)},
                {"seconds", found.seconds}};
  if (found.trace) document["trace"] = trace_document(*found.trace);
  return document;
}

std::string strategy_line(const char* name, const std::vector<double>& strategy) {
  constexpr std::size_t kShown = 10;
  std::string text = fmt::format("  {} ", name);
  for (std::size_t i = 0; i < std::min(strategy.size(), kShown); ++i)
    text += fmt::format(" {:.8g}", strategy[i]);
  if (strategy.size() > kShown) text += fmt::format(" ... {} in all (--json)", strategy.size());
  return text + "\n";
}

std::string trace_text(const GameTrace& trace) {
  std::string text =
      trace.contracts
          ? fmt::format("\ny <- T(y) from uniform y contracts by {:.6g} per step\n", trace.rate)
          : fmt::format(
                "\ny <- y + {:.6g} (T(y) - y) from uniform y: the excess falls by {:.6g} "
                "per step\n",
                trace.damping, trace.rate);
  std::vector<std::vector<std::string>> rows{{"step", "|y - y*|_1", "a priori", "a posteriori"}};
  for (const TraceStep& step : trace.steps) {
    rows.push_back({fmt::format("{}", step.iteration), fmt::format("{:.4e}", step.error),
                    fmt::format("{:.4e}", step.a_priori),
                    fmt::format("{:.4e}", step.a_posteriori)});
  }
  return text + format_table(rows);
}

std::string game_text(const GameFindings& found) {
  const GameProof& proof = found.proof;
  const Contraction& contraction = found.contraction;
  std::string text =
      fmt::format("{} x {} game, tau {}\n", found.game.rows, found.game.cols, found.game.tau);
  text += fmt::format("  {} <= value <= {}\n", format_down(proof.value.lower, 12),
                      format_up(proof.value.upper, 12));
  text += fmt::format("  duality gap <= {}\n", format_up(proof.gap.upper, 4));
  text += fmt::format("  |x - x*|_1 + |y - y*|_1 <= {}\n", format_up(proof.distance, 4));
  text += strategy_line("x", found.equilibrium.x) + strategy_line("y", found.equilibrium.y);
  text +=
      fmt::format("  {}, {} iterations\n", found.equilibrium.method, found.equilibrium.iterations);
  text += fmt::format("  y -> T(y) has factor <= {} in the 1-norm; it contracts for tau > {}\n",
                      format_up(contraction.factor, 6), format_up(contraction.tau_guaranteed, 6));
  text += fmt::format("  without entropy: exploitability <= {}, {} <= value <= {}\n",
                      format_up(proof.exploitability.upper, 4),
                      format_down(proof.nash_value.lower, 6), format_up(proof.nash_value.upper, 6));
  if (found.outcome == Outcome::kTimeLimit) text += "  time limit reached; raise --time for more\n";
  if (found.outcome == Outcome::kInterrupted)
    text += "  interrupted; this is the best found so far\n";
  if (found.outcome == Outcome::kFinished && !found.equilibrium.converged)
    text += "  tau is too small to be followed to the end; the bounds hold\n";
  return found.trace ? text + trace_text(*found.trace) : text;
}

Action declare_game(CLI::App& app, const Common& common) {
  auto flags = std::make_shared<GameFlags>();
  reads_file(app.add_option("file", flags->file,
                            "payoff matrix; rows are the minimising player's actions"))
      ->required()
      ->type_name("FILE");
  takes_numbers(app.add_option("--tau", flags->tau, "weight of the entropies, > 0"))
      ->required()
      ->type_name("T");
  app.add_flag("--trace", flags->trace,
               "the error of the double-softmax iteration, step by step, against its bounds");
  return [flags, &common]() -> Result {
    auto found = std::make_shared<GameFindings>(find_equilibrium(*flags, common));
    return {.document = [found] { return game_document(*found); },
            .text = [found] { return game_text(*found); },
            .exit_code = found->outcome == Outcome::kInterrupted ? 130 : 0};
  };
}

}  // namespace

std::vector<Command> command_game() {
  return {{.name = "game",
           .summary = "the equilibrium of an entropy-regularised zero-sum game, with proved bounds",
           .examples = "  lipscope game payoff.csv --tau 0.1\n"
                       "  lipscope game payoff.npy --tau 2 --trace",
           .declare = declare_game}};
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "base/check.h"
#include "base/memory_budget.h"
#include "base/rounding.h"
#include "bounds/affine_nodes.h"
#include "bounds/boxes.h"
#include "lipscope/error.h"
#include "lipscope/robustness.h"
#include "net/problem.h"
#include "net/small.h"
#include "robust/attack.h"
#include "robust/ball_ranges.h"
#include "robust/local_radius.h"
#include "robust/logit_ranges.h"
#include "robust/margin_needs.h"
#include "robust/pair_constants.h"
#include "robust/well_defined.h"

namespace lipscope {

struct Certifier::Parts {
  const Graph& graph;
  CertifyOptions options;
  Index classes = 0, inputs = 0;
  Problem problem;       // everywhere
  std::string obstacle;  // why it has no network of units; empty: it has
  std::optional<LogitRanges> logit_ranges;
  PairConstants constants;
  bool only_cheap = false;  // constants
  std::once_flag made_ranges = {};
  std::optional<BallRanges> ranges = {};
  std::optional<AffineNodes> affine = {};  // of graphs that are no chain

  // Before several threads ask for them.
  void make_networks();
  [[nodiscard]] LocalQuery question_about(std::span<const double> point,
                                          const Decision& decision) const;
  // What is known of the graph for all balls.
  [[nodiscard]] GraphParts graph_parts();
  [[nodiscard]] LocalAnswer local_radius(LocalQuery& question, const std::function<bool()>& stop,
                                         std::string& method);
  // How much a margin has to exceed what the proof needs, by rival.
  [[nodiscard]] std::vector<double> needed(std::span<const double> point, Index winner,
                                           double radius) const {
    if (!options.margins_needed) return std::vector<double>(to_size(classes));
    return options.margins_needed(point, radius, winner);
  }
  void decide(std::span<const double> point, std::span<const Interval> logits, Index label,
              Decision& decision) const;
};

void Certifier::Parts::make_networks() {
  try {
    obstacle = problem.network().reason();
  } catch (const std::bad_alloc&) {
    obstacle = "memory limit reached";
    relieve_memory();
  }
  try {
    logit_ranges.emplace(graph, obstacle.empty() ? problem.chain().get() : nullptr);
  } catch (const std::bad_alloc&) {
    problem.forget_chain();
    relieve_memory();
    logit_ranges.emplace(graph, nullptr);  // slower
  }
}

Certifier::Certifier(const Graph& graph, CertifyOptions options)
    : parts_(new Parts{.graph = graph,
                       .options = std::move(options),
                       .problem = Problem({.graph = &graph}),
                       .obstacle = {},
                       .logit_ranges = {},
                       .constants = {}}) {
  const ValueType& out = graph.value(graph.outputs().empty() ? ValueId{} : graph.outputs()[0]).type;
  if (graph.outputs().empty() || !is_floating(out.type))
    throw Error(ErrorCode::kUnsupported, "the output is not a floating tensor");
  parts_->classes = element_count(out.shape);
  const auto several = std::ranges::count_if(out.shape, [](Index n) { return n != 1; });
  if (several > 1) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("the output has shape {}: a decision at every place, where one vector "
                            "of classes is needed",
                            to_string(out.shape)));
  }
  parts_->inputs = input_size(graph);
  if (parts_->classes < 2) {
    throw Error(ErrorCode::kUnsupported,
                "the model has one output: there is no second class to decide against");
  }
  parts_->make_networks();
}
Certifier::~Certifier() = default;

Index Certifier::classes() const { return parts_->classes; }
const PairConstants& Certifier::constants() const { return parts_->constants; }
const std::string& Certifier::local_obstacle() const { return parts_->obstacle; }

std::shared_ptr<const LogitTable> Certifier::logits(std::span<const double> points,
                                                    const std::function<bool()>& stop) const {
  constexpr std::size_t kTogether = 1024;  // samples
  auto table = std::make_shared<LogitTable>();
  const std::size_t size = to_size(parts_->inputs), count = points.size() / size;
  for (std::size_t s = 0; s < count && !(stop && stop()); s += kTogether) {
    const std::size_t some = std::min(kTogether, count - s);
    const auto found = parts_->logit_ranges->of_each(points.subspan(s * size, some * size), stop);
    table->entries.insert(table->entries.end(), found.logits.begin(), found.logits.end());
    table->samples = s + found.samples;
    if (found.samples < some) break;
  }
  table->entries.resize(count * to_size(parts_->classes), kEntire);
  return table;
}

const PairConstants& Certifier::find_cheap_constants(const RunContext& context) {
  constexpr double kShare = 0.02;  // more would make them a little smaller
  parts_->constants = cheap_pair_constants(parts_->problem, parts_->options.norm,
                                           kShare * context.clock->limit(), context);
  parts_->only_cheap = true;
  return parts_->constants;
}

const PairConstants& Certifier::find_constants(std::chrono::duration<double> time,
                                               const RunContext& context,
                                               const ConstantsFor& purpose) {
  std::optional<MarginNeeds> needs;
  if (purpose.logits)
    needs.emplace(*purpose.logits, purpose.labels, purpose.radii, parts_->classes);
  parts_->constants =
      pair_constants(parts_->problem, parts_->options.norm, time.count(), context,
                     needs ? &*needs : nullptr, parts_->only_cheap ? &parts_->constants : nullptr);
  parts_->only_cheap = false;
  return parts_->constants;
}

void Certifier::Parts::decide(std::span<const double> point, std::span<const Interval> logits,
                              Index label, Decision& decision) const {
  const auto top =
      std::ranges::max_element(logits, {}, [](const Interval& x) { return midpoint(x); });
  const Index winner = top - logits.begin();
  decision.predicted = is_bounded(*top) ? winner : -1;
  decision.certain = true;
  for (Index j = 0; j < classes; ++j) {
    if (j != winner && !(logits[to_size(winner)].lo > logits[to_size(j)].hi))
      decision.certain = false;
  }
  if (!decision.certain || winner != label) return;
  const auto radius_above = [&](const std::vector<double>& least) {
    double radius = kInf;
    for (Index j = 0; j < classes; ++j) {
      if (j == winner) continue;
      const double margin =
          sub_down(sub_down(logits[to_size(winner)].lo, logits[to_size(j)].hi), least[to_size(j)]);
      const double constant = constants.upper.empty() ? kInf : constants.at(winner, j).value;
      double r = 0;
      if (margin > 0)
        r = constant == 0 ? kInf
            : constant == kInf
                ? 0
                : std::max(0.0, next_down(div_down(margin, constant)));  // below the quotient
      if (r < radius || decision.rival < 0) decision.rival = j;
      radius = std::min(radius, r);
    }
    return radius;
  };
  decision.radius = radius_above(std::vector<double>(to_size(classes)));
  if (options.margins_needed && decision.radius > 0) {
    // Errors on a larger ball are errors on a smaller one; on one that is too large all is lost.
    double largest = 1;
    for (const double x : point) largest = std::max(largest, std::fabs(x));
    double ball = decision.radius;
    decision.radius = 0;
    for (int attempt = 0; attempt < 3 && decision.radius == 0; ++attempt) {
      decision.radius = std::min(ball, radius_above(needed(point, winner, ball)));
      ball = std::min(ball, 64 * largest) / 16;
    }
  }
  if (decision.radius > 0) decision.method = "global-constants";
}

std::vector<Decision> Certifier::decide(std::span<const double> points,
                                        std::span<const Index> labels) const {
  return decide(points, labels, *logits(points));
}

std::vector<Decision> Certifier::decide(std::span<const double> points,
                                        std::span<const Index> labels,
                                        const LogitTable& logits) const {
  const std::size_t size = to_size(parts_->inputs), classes = to_size(parts_->classes);
  LIPSCOPE_CHECK(points.size() == labels.size() * size);
  LIPSCOPE_CHECK(logits.entries.size() == labels.size() * classes);
  std::vector<Decision> decisions(labels.size());
  for (std::size_t s = 0; s < labels.size(); ++s) {
    parts_->decide(points.subspan(s * size, size),
                   std::span(logits.entries).subspan(s * classes, classes), labels[s],
                   decisions[s]);
  }
  return decisions;
}

void Certifier::attack(std::span<const double> points, std::span<const Index> labels,
                       std::span<Decision> decisions, const std::function<bool()>& stop) const {
  const std::size_t size = to_size(parts_->inputs);
  std::vector<double> wanted;
  std::vector<Index> winners;
  std::vector<std::size_t> places;
  for (std::size_t s = 0; s < decisions.size(); ++s) {
    if (!decisions[s].certain || decisions[s].predicted != labels[s]) continue;
    places.push_back(s);
    winners.push_back(decisions[s].predicted);
    const auto sample = points.subspan(s * size, size);
    wanted.insert(wanted.end(), sample.begin(), sample.end());
  }
  const std::vector<double> found = attack_distances(parts_->graph, *parts_->logit_ranges,
                                                     {.points = wanted,
                                                      .winners = winners,
                                                      .norm = parts_->options.norm,
                                                      .seed = parts_->options.seed,
                                                      .stop = stop});
  for (std::size_t k = 0; k < places.size(); ++k) {
    if (!std::isfinite(found[k])) continue;
    Decision& decision = decisions[places[k]];
    decision.attack_radius = found[k];
    if (decision.radius > found[k])
      throw Error(ErrorCode::kInternal, "a proved radius reaches beyond an input of another class");
  }
}

LocalQuery Certifier::Parts::question_about(std::span<const double> point,
                                            const Decision& decision) const {
  return {.point = point,
          .norm = options.norm,
          .winner = decision.predicted,
          .low = decision.radius,
          .high = decision.attack_radius.value_or(std::max(1.0, 64 * decision.radius)),
          .parts = options.parts,
          .needed = [this, point, winner = decision.predicted](double radius) {
            return needed(point, winner, radius);
          }};
}

GraphParts Certifier::Parts::graph_parts() {
  std::call_once(made_ranges, [&] {
    ranges.emplace(graph, options.norm);
    if (!obstacle.empty()) affine.emplace(graph);
  });
  return {&*ranges, affine ? &*affine : nullptr};
}

LocalAnswer Certifier::Parts::local_radius(LocalQuery& question, const std::function<bool()>& stop,
                                           std::string& method) {
  LocalAnswer best{.radius = question.low};
  const auto keep = [&](const LocalAnswer& found, const char* name) {
    if (!(found.radius > best.radius)) return;
    best = found;
    method = name;
    question.low = found.radius;
  };
  const LocalAnswer by_gradients = gradient_radius(graph, graph_parts(), question, stop);
  keep(by_gradients, by_gradients.branched   ? "linear-bounds-by-cases"
                     : by_gradients.by_lines ? "linear-bounds"
                                             : "local-gradients");
  if (obstacle.empty()) {
    const LocalAnswer found = linear_radius(problem, question, stop);
    keep(found, found.branched ? "linear-bounds-by-cases" : "linear-bounds");
  } else {
    keep(constant_radius(graph, question, stop), "local-constants");
  }
  return best;
}

bool Certifier::prove(std::span<const double> point, double radius, BallDepth depth,
                      Decision& decision, const std::function<bool()>& stop) const {
  if (!decision.certain || radius <= decision.radius) return decision.certain;
  if (well_defined_radius(parts_->graph, point, radius) < radius) return false;
  const LocalQuery question = parts_->question_about(point, decision);
  const bool cases = depth == BallDepth::kCases;
  BallAnswer found;
  if (parts_->obstacle.empty()) {
    found = prove_ball_by_lines(parts_->problem, question, radius, cases, stop);
  } else {
    found = prove_ball_by_gradients(parts_->graph, parts_->graph_parts(), question, radius, cases,
                                    stop);
    if (!found.proved && !cases)
      found = prove_ball_by_constants(parts_->graph, question, radius, stop);
  }
  if (found.rival >= 0) decision.rival = found.rival;
  if (!found.proved) return false;
  decision.radius = radius;
  decision.method = found.method;
  if (decision.attack_radius && decision.radius > *decision.attack_radius)
    throw Error(ErrorCode::kInternal, "a proved radius reaches beyond an input of another class");
  return true;
}

void Certifier::improve(std::span<const double> point, Decision& decision,
                        const std::function<bool()>& stop, double most) const {
  if (!decision.certain || !std::isfinite(decision.radius)) return;
  LocalQuery question = parts_->question_about(point, decision);
  question.high = well_defined_radius(parts_->graph, point, std::min(question.high, most));
  if (!(question.high > decision.radius)) return;
  std::string method;
  const LocalAnswer found = parts_->local_radius(question, stop, method);
  if (!(found.radius > decision.radius)) return;
  decision.radius = found.radius;
  decision.rival = found.rival >= 0 ? found.rival : decision.rival;
  decision.method = method;
  if (decision.attack_radius && decision.radius > *decision.attack_radius)
    throw Error(ErrorCode::kInternal, "a proved radius reaches beyond an input of another class");
}

}  // namespace lipscope

// SPDX-License-Identifier: Apache-2.0
// Runs the methods that apply, cheapest first, and keeps the best of each side.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "estimate/method.h"
#include "estimate/piece_run.h"
#include "estimate/quotient.h"
#include "lipscope/error.h"
#include "passes/split_softmax.h"
#include "pieces/local_net.h"

namespace lipscope {

std::vector<Method> make_method_table();  // generated from the list in CMakeLists.txt

std::span<const Method> methods() {
  static const std::vector<Method> table = make_method_table();
  return table;
}

std::vector<MethodInfo> method_list() {
  std::vector<MethodInfo> list;
  for (const Method& method : methods()) list.push_back(method.info);
  return list;
}

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void check_names(const std::vector<std::string>& wanted) {
  std::vector<std::string_view> known;
  for (const Method& method : methods()) known.push_back(method.info.id);
  for (const std::string& name : wanted) {
    if (std::ranges::find(known, name) == known.end()) {
      throw Error(ErrorCode::kUsage, fmt::format("there is no method '{}'; there are {}", name,
                                                 fmt::join(known, ", ")));
    }
  }
}

// No limit: a clock counts no further than some hundred years.
constexpr std::chrono::duration<double> kLongest{1e9};

class Plan {
 public:
  Plan(const Query& query, const Budget& budget, const RunContext& context)
      : query_(query),
        budget_(budget),
        context_(context),
        start_(Clock::now()),
        deadline_(start_ +
                  std::chrono::duration_cast<Clock::duration>(std::min(budget.time, kLongest))) {}

  Answer run() {
    try_hints();
    std::vector<MethodReport>& reports = answer_.methods;
    reports.reserve(methods().size());
    for (const Method& method : methods()) {
      reports.push_back(
          {.method = std::string(method.info.id), .side = std::string(method.info.side)});
      if (method.run_first != nullptr && reason_to_skip(method).empty())
        run_one(method, method.run_first, reports.back());
    }
    for (std::size_t i = 0; i < reports.size(); ++i) {
      const Method& method = methods()[i];
      reports[i].skipped = reason_to_skip(method);
      if (reports[i].skipped.empty()) run_one(method, method.run, reports[i]);
      if (reports[i].bound) reports[i].skipped.clear();  // its first run was enough
    }
    answer_.outcome = reached_target()                 ? Outcome::kTarget
                      : context_.stop.stop_requested() ? Outcome::kInterrupted
                      : Clock::now() >= deadline_      ? Outcome::kTimeLimit
                                                       : Outcome::kFinished;
    answer_.seconds = since(start_);
    return std::move(answer_);
  }

 private:
  void try_hints() {
    for (const Hint& hint : context_.hints) {
      const Witness& witness = hint.witness;
      if (!in_domain(query_.domain, witness.x) || !in_domain(query_.domain, witness.y)) continue;
      const double value = proved_quotient(query_, witness, true);
      if (value > 0)
        keep(true, {value, Guarantee::kProved, hint.method}, {.proof = QuotientProof{witness}});
    }
  }

  bool reached_target() const {
    const auto ratio = answer_.bracket.ratio();
    return ratio && *ratio <= budget_.target_ratio;
  }

  bool is_named(const Method& method) const {
    return std::ranges::find(budget_.methods, method.info.id) != budget_.methods.end();
  }

  std::string reason_to_skip(const Method& method) const {
    if (!budget_.methods.empty() && !is_named(method)) return "not asked for";
    if (method.only_by_name && !is_named(method))
      return fmt::format("only when asked for: --methods {}", method.info.id);
    if (std::string reason = method.unsupported(query_); !reason.empty()) return reason;
    // Methods for comparison are asked for because of their answer, not for the bracket's sake.
    if (reached_target() && !method.only_by_name) return "the target ratio was reached before";
    if (context_.stop.stop_requested()) return "interrupted before";
    if (Clock::now() >= deadline_) return "the time was up before";
    return {};
  }

  void run_one(const Method& method, void (*work)(const MethodRun&), MethodReport& report) {
    const auto start = Clock::now();
    const bool lower = method.info.side == "lower";
    if (context_.progress) context_.progress({method.info.id, &answer_.bracket});
    const MethodRun run{
        .query = query_,
        .context = context_,
        .found = answer_.bracket,
        .deadline = deadline_,
        .report =
            [&](Bound bound, Evidence evidence) {
              const bool better = !report.bound || (lower ? bound.value > report.bound->value
                                                          : bound.value < report.bound->value);
              if (better) {
                report.bound = bound;
                report.gap = evidence.gap;
                report.note = std::move(evidence.note);
              }
              keep(lower, bound, std::move(evidence));
              if (context_.progress) context_.progress({method.info.id, &answer_.bracket});
            },
        .report_witness =
            [&](Bound bound, Witness witness) {
              keep(true, bound, {.proof = QuotientProof{std::move(witness)}});
            },
        .no_bound =
            [&](std::string why) {
              if (answer_.no_bound.empty()) answer_.no_bound = std::move(why);
            },
        .decline = [&](std::string why) { report.skipped = std::move(why); },
        .named = is_named(method),
        .has_answered =
            [&](std::string_view name) {
              return std::ranges::any_of(answer_.methods, [&](const MethodReport& other) {
                return other.method == name && other.bound;
              });
            },
        .local_net = [&](std::string& reason) { return local_net(reason); },
        .target_reached = [&] { return reached_target(); },
        .target_ratio = budget_.target_ratio};
    try {
      work(run);
    } catch (const Error& error) {
      // A point where the network is not defined, such as an index outside its table.
      if (error.code() != ErrorCode::kShape) throw;
      report.skipped = error.what();
    }
    report.seconds += since(start);
  }

  const LocalNet* local_net(std::string& reason) {
    if (!local_net_ && no_local_net_.empty()) {
      const auto stop = [&] { return context_.stop.stop_requested() || Clock::now() >= deadline_; };
      split_ = split_softmax(*query_.graph);
      local_net_ = find_local_net(split_ ? *split_ : *query_.graph, query_.domain,
                                  kMostPieceWeights, no_local_net_, stop);
    }
    reason = no_local_net_;
    return local_net_ ? &*local_net_ : nullptr;
  }

  void keep(bool lower, const Bound& bound, Evidence evidence) {
    Bracket& bracket = answer_.bracket;
    const bool proved = bound.guarantee == Guarantee::kProved;
    if (lower) {
      const std::optional<Bound>& held = answer_.witnessed;
      auto* quotient = evidence.proof ? std::get_if<QuotientProof>(&*evidence.proof) : nullptr;
      if (proved && quotient != nullptr && (!held || bound.value > held->value)) {
        answer_.witness = std::move(quotient->witness);
        answer_.witnessed = bound;
      }
      bracket.add_lower(bound);
      return;
    }
    const auto held = bracket.upper(Guarantee::kProved);
    if (proved && (!held || bound.value < held->value)) answer_.proof = std::move(evidence.proof);
    bracket.add_upper(bound);
  }

  const Query& query_;
  const Budget& budget_;
  const RunContext& context_;
  Clock::time_point start_, deadline_;
  Answer answer_;
  std::optional<Graph> split_;  // of a network that ends in a softmax
  std::optional<LocalNet> local_net_;
  std::string no_local_net_;  // why
};

}  // namespace

Answer find_bracket(const Query& query, const Budget& budget, const RunContext& context) {
  check_names(budget.methods);
  if (query.graph->outputs().empty() ||
      !is_floating(query.graph->value(query.graph->outputs()[0]).type.type)) {
    throw Error(ErrorCode::kUnsupported, "the output is not a floating tensor");
  }
  return Plan(query, budget, context).run();
}

}  // namespace lipscope

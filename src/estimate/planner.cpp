// SPDX-License-Identifier: Apache-2.0
// Runs the methods that apply, cheapest first, and keeps the best of each side.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/checkpoint.h"
#include "base/interval.h"
#include "base/memory_budget.h"
#include "bounds/no_value.h"
#include "estimate/method.h"
#include "estimate/quotient.h"
#include "lipscope/error.h"
#include "net/problem.h"

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

// Seconds of the wall, for reports: nothing is decided by them.
class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// How the gap, log(upper / lower), has closed in the course of a run.
class GapHistory {
 public:
  void add(double time, const Bracket& bracket) {
    const auto ratio = bracket.ratio();
    const double gap = ratio ? std::log(*ratio) : kInf;
    if (steps_.empty() || gap < steps_.back().gap) steps_.push_back({time, gap});
  }
  [[nodiscard]] double now() const { return steps_.empty() ? kInf : steps_.back().gap; }
  [[nodiscard]] double at(double time) const {
    double gap = kInf;
    for (const Step& step : steps_) {
      if (step.time <= time) gap = step.gap;
    }
    return gap;
  }

 private:
  struct Step {
    double time, gap;
  };
  std::vector<Step> steps_;
};

class Plan {
 public:
  Plan(const Query& query, const Budget& budget, const RunContext& context)
      : query_(query),
        budget_(budget),
        context_(context),
        clock_(*context.clock),
        start_(clock_.now()),
        deadline_(std::min(start_ + budget.time.count(), clock_.limit())),
        problem_(query, [this] { return clock_.passed(deadline_); }) {}

  Answer run() {
    const Stopwatch watch;
    const RunScope scope(clock_, cut_after(clock_.limit(), clock_.limit()));
    try_hints();
    answer_.methods.reserve(methods().size());
    for (const Method& method : methods()) {
      answer_.methods.push_back(
          {.method = std::string(method.info.id), .side = std::string(method.info.side)});
      if (method.run_first != nullptr && reason_to_skip(method).empty())
        run_one(method, method.run_first, deadline_, clock_.limit());
    }
    if (lacks_value()) return without_value(watch.seconds());
    struct Hungry {
      const Method* method;
      double spent;  // by the clock
    };
    std::vector<Hungry> hungry;
    for (const Method& method : methods()) {
      if (!start(method)) continue;
      const double begin = clock_.now();
      const double end = is_named(method) ? deadline_ : share_of(method.share);
      const Ending ending = run_one(method, method.run, end, end);
      if (ending == Ending::kNoMemory) continue;
      const double now = clock_.now();
      if ((ending == Ending::kCut || now >= end) && end < deadline_)
        hungry.push_back({&method, now - begin});
    }
    // Again from the start, so only with more time than before.
    for (const auto& [method, spent] : hungry) {
      if (clock_.now() + spent < deadline_ && start(*method))
        run_one(*method, method->run, deadline_, deadline_);
    }
    if (lacks_value()) return without_value(watch.seconds());
    answer_.outcome = outcome();
    answer_.seconds = watch.seconds();
    return std::move(answer_);
  }

 private:
  enum class Ending { kEnded, kCut, kNoMemory };
  static constexpr const char* kNoRoom = "memory limit reached";
  // Whether a finite bound was found for a function that has no value on the domain. Once there is
  // one, and whatever the time.
  bool lacks_value() {
    const auto upper = answer_.bracket.upper(Guarantee::kProved);
    if (looked_for_value_ || !upper || std::isinf(upper->value)) return false;
    looked_for_value_ = true;
    try {
      const Unstoppable whole;
      no_value_ = no_value_anywhere(problem_.boxes());
    } catch (const std::bad_alloc&) {
      relieve_memory();
    }
    return !no_value_.empty();
  }

  Answer without_value(double seconds) const {
    Answer answer;
    answer.methods = answer_.methods;
    answer.no_bound = no_value_;
    answer.seconds = seconds;
    for (MethodReport& report : answer.methods) {
      report.bound.reset();
      report.skipped = no_value_;
    }
    answer.bracket.add_upper({kInf, Guarantee::kProved, "layer-product"});
    return answer;
  }

  double share_of(double share) const {
    const double now = clock_.now();
    return now + share * std::max(0.0, deadline_ - now);
  }

  MethodReport& report_of(const Method& method) {
    return answer_.methods[static_cast<std::size_t>(&method - methods().data())];
  }

  // Whether the method is to run now; its report says why not.
  bool start(const Method& method) {
    MethodReport& report = report_of(method);
    report.skipped = reason_to_skip(method);
    const bool runs = report.skipped.empty();
    if (report.bound) report.skipped.clear();  // its first run was enough
    return runs;
  }

  Outcome outcome() const {
    if (reached_target()) return Outcome::kTarget;
    if (clock_.stop_requested()) return Outcome::kInterrupted;
    if (no_room_) return Outcome::kMemoryLimit;
    if (clock_.now() >= deadline_) return Outcome::kTimeLimit;
    return answer_.little_gain.empty() ? Outcome::kFinished : Outcome::kLittleGain;
  }

  // Whether the method that began at `start` brings little: in the second half of its time the gap
  // has hardly closed.
  bool brings_little(std::string_view method, double start) {
    constexpr double kShortest = 1.5, kSmall = 1e-3, kShare = 0.02;
    if (!budget_.until_little_gain || !std::isfinite(gaps_.now())) return false;
    const double now = clock_.now(), window = std::max(kShortest, 0.5 * (now - start));
    if (now - start < window) return false;
    const double closed = gaps_.at(now - window) - gaps_.now();
    if (!(closed < kSmall + kShare * gaps_.now())) return false;
    answer_.little_gain =
        fmt::format("in its last {:.1f} s {} brought upper / lower from {:.5g} to {:.5g}", window,
                    method, std::exp(gaps_.at(now - window)), std::exp(gaps_.now()));
    return true;
  }

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

  std::string obstacle_to(const Method& method) {
    try {
      return method.unsupported(query_);
    } catch (const std::bad_alloc&) {
      no_room_ = true;
      relieve_memory();
      return kNoRoom;
    }
  }

  std::string reason_to_skip(const Method& method) {
    if (!budget_.methods.empty() && !is_named(method)) return "not asked for";
    if (method.only_by_name && !is_named(method))
      return fmt::format("only when asked for: --methods {}", method.info.id);
    if (std::string reason = obstacle_to(method); !reason.empty()) return reason;
    // Methods for comparison are asked for because of their answer, not for the bracket's sake.
    if (reached_target() && !method.only_by_name) return "the target ratio was reached before";
    if (clock_.stop_requested()) return "interrupted before";
    if (clock_.now() >= deadline_) return "time limit reached before it started";
    return {};
  }

  // `deadline`: when the method should end; past `last`, it is ended.
  Ending run_one(const Method& method, void (*work)(const MethodRun&), double deadline,
                 double last) {
    MethodReport& report = report_of(method);
    const Stopwatch watch;
    const double start = clock_.now();
    const bool lower = method.info.side == "lower";
    if (context_.progress) context_.progress({method.info.id, &answer_.bracket});
    const MethodRun run{
        .query = query_,
        .problem = problem_,
        .context = context_,
        .found = answer_.bracket,
        .deadline = deadline,
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
        .target_reached =
            [&] {
              return reached_target() ||
                     (!method.all_or_nothing && brings_little(method.info.id, start));
            },
        .target_ratio = budget_.target_ratio};
    Ending ending = Ending::kEnded;
    try {
      const RunScope scope(clock_, cut_after(last, last - start_));
      work(run);
    } catch (const Stopped& stopped) {
      ending = stopped.cause == StopCause::kMemory ? Ending::kNoMemory : Ending::kCut;
      if (!report.bound) report.skipped = "time limit reached";
    } catch (const std::bad_alloc&) {
      ending = Ending::kNoMemory;
    } catch (const Error& error) {
      // A point where the network is not defined, such as an index outside its table.
      if (error.code() != ErrorCode::kShape) throw;
      report.skipped = error.what();
    }
    if (ending == Ending::kNoMemory) go_without(report);
    report.seconds += watch.seconds();
    return ending;
  }

  // What the method held is free again: cheaper ones may still fit.
  void go_without(MethodReport& report) {
    no_room_ = true;
    (report.bound ? report.note : report.skipped) = kNoRoom;
    relieve_memory();
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
      gaps_.add(clock_.now(), bracket);
      return;
    }
    const auto held = bracket.upper(Guarantee::kProved);
    if (proved && (!held || bound.value < held->value)) answer_.proof = std::move(evidence.proof);
    bracket.add_upper(bound);
    gaps_.add(clock_.now(), bracket);
  }

  const Query& query_;
  const Budget& budget_;
  const RunContext& context_;
  const RunClock& clock_;
  double start_, deadline_;
  Problem problem_;
  bool no_room_ = false;  // for some method
  bool looked_for_value_ = false;
  std::string no_value_;  // why there is none
  Answer answer_;
  GapHistory gaps_;
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

// SPDX-License-Identifier: Apache-2.0
// One file per method in methods/, one word in the list of CMakeLists.txt.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lipscope/bound.h"

namespace lipscope {

class Problem;

// What a method may look at while it runs. Immutable but for `report`, which may be called at any
// time from the thread that runs the method.
struct MethodRun {
  const Query& query;
  Problem& problem;  // the same, with its networks
  const RunContext& context;
  const Bracket& found;  // by all methods so far
  double deadline;       // by the clock of the run
  // Adds what was found so far.
  std::function<void(Bound, Evidence)> report;
  // A proved lower bound that a method for upper bounds came across.
  std::function<void(Bound, Witness)> report_witness;
  // A function without a finite constant: the node and why.
  std::function<void(std::string)> no_bound;

  // The method ends without an answer: why.
  std::function<void(std::string)> decline;
  // Whether the user asked for the method by its name.
  bool named = false;
  // Whether another method has found a bound for this query.
  std::function<bool(std::string_view)> has_answered;

  // Whether the bracket is as tight as the user wants it.
  std::function<bool()> target_reached;
  double target_ratio = 1;

  // The best proved lower bound so far, 0 without one.
  [[nodiscard]] double proved_lower() const {
    const auto bound = found.lower(Guarantee::kProved);
    return bound ? bound->value : 0;
  }

  [[nodiscard]] double now() const { return context.clock->now(); }
  [[nodiscard]] double seconds_left() const { return deadline - now(); }
  [[nodiscard]] bool interrupted() const { return context.clock->stop_requested(); }
  [[nodiscard]] bool passed(double time) const { return context.clock->passed(time); }
  [[nodiscard]] bool should_stop() const { return target_reached() || passed(deadline); }
};

struct Method {
  MethodInfo info;
  // Why the method cannot answer the query; empty when it can.
  std::string (*unsupported)(const Query& query);
  // Being stopped costs tightness, never validity.
  void (*run)(const MethodRun& run);
  // A first answer, to be had long before run() ends; may be null.
  void (*run_first)(const MethodRun& run) = nullptr;
  bool only_by_name = false;  // not part of an answer unless the user asks for it
  // Says nothing before it ends.
  bool all_or_nothing = false;
  // Of the time that is left, for a first go; if that was not enough, what the others leave.
  double share = 1;
};

// In the order they run, cheapest first.
[[nodiscard]] std::span<const Method> methods();

}  // namespace lipscope

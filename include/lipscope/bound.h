// SPDX-License-Identifier: Apache-2.0
// The question and its answer: how far can the output move when the input moves by one?
//
//   const Query query{.graph = &graph, .norms = parse_norms("2")};
//   RunContext context;
//   const Answer answer = find_bracket(query, {}, context);
//   answer.bracket.upper(Guarantee::kProved)->value
#pragma once

#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/proof.h"
#include "lipscope/query.h"
#include "lipscope/run_clock.h"

namespace lipscope {

// The best bounds found, one per guarantee, so that an estimate never pushes out a proof.
class Bracket {
 public:
  // Keeps the bound if it is better than what there is. A NaN, or a proved lower bound above a
  // proved upper one, is a defect of a method: throws kInternal.
  void add_lower(Bound bound);
  void add_upper(Bound bound);
  // The best bound with at least this guarantee; nothing when there is none.
  [[nodiscard]] std::optional<Bound> lower(Guarantee at_least) const;
  [[nodiscard]] std::optional<Bound> upper(Guarantee at_least) const;
  // upper / lower, rounded up; nothing without both or with a lower bound of zero.
  [[nodiscard]] std::optional<double> ratio(Guarantee at_least = Guarantee::kProved) const;

 private:
  void check() const;
  std::array<std::optional<Bound>, 3> lower_, upper_;
};

enum class Outcome { kFinished, kTarget, kLittleGain, kTimeLimit, kMemoryLimit, kInterrupted };
[[nodiscard]] std::string_view to_string(Outcome outcome);

// What a method knows about a bound besides its value.
struct Evidence {
  std::optional<Proof> proof = {};
  std::optional<double> gap = {};  // relative distance to the best the method could do
  std::string note = {};           // what an estimate rests on
};

struct MethodReport {
  std::string method;
  std::string side;  // "lower" or "upper"
  std::optional<Bound> bound;
  double seconds = 0;
  std::optional<double> gap;
  std::string note;     // what an estimate rests on
  std::string skipped;  // why it did not run
};

// Valid for every outcome, only looser when stopped early.
struct Answer {
  Bracket bracket;
  Outcome outcome = Outcome::kFinished;
  std::optional<Witness> witness;  // the pair with the best proved quotient, and what it proves:
  std::optional<Bound> witnessed;  // less than the lower bound where that one has no witness
  std::optional<Proof> proof;      // of the best proved upper bound
  std::string no_bound;            // where and why there is no finite upper bound
  std::string little_gain;         // what was still to be had, where the run ended for that
  std::vector<MethodReport> methods;
  double seconds = 0;
};

struct ProgressEvent {
  std::string_view stage;
  const Bracket* best = nullptr;
};

class GainMemory;
// Gains found for one query are there for the next one with the same context.
[[nodiscard]] std::shared_ptr<GainMemory> make_gain_memory();

// A pair of points that may prove a good lower bound, and the method that found it.
struct Hint {
  Witness witness;
  std::string method;
};

// Everything a run may use; nothing global.
struct RunContext {
  std::shared_ptr<const RunClock> clock = RunClock::by_wall(HUGE_VAL);
  std::uint64_t seed = 1;
  std::function<void(const ProgressEvent&)> progress;
  std::shared_ptr<GainMemory> memory = make_gain_memory();
  std::vector<Hint> hints = {};  // tried before any method
};

struct Budget {
  std::chrono::duration<double> time{60};  // by the clock of the context
  double target_ratio = 1 + 1e-6;
  // End as soon as more time would bring little.
  bool until_little_gain = false;
  std::vector<std::string> methods;  // empty: all that apply
};

// Runs every method that applies, cheapest first, until the target ratio, the time or a stop
// request. Throws kUsage for an unknown method name.
[[nodiscard]] Answer find_bracket(const Query& query, const Budget& budget,
                                  const RunContext& context);

// One radius of a series of balls with the same centre.
struct RadiusAnswer {
  double radius = 0;
  Answer answer;    // to the question for this radius alone
  Bracket bracket;  // and what the others add: upper bounds of larger balls hold in smaller ones
};

// The query's ball with each of the radii, which grow; the time is for all of them. What proves a
// lower bound in a ball starts the search in the next one, so both bounds grow with the radius.
// Stopped early, each radius still has a quick upper bound where there is one. Throws kUsage
// without a ball or for radii in another order.
[[nodiscard]] std::vector<RadiusAnswer> find_series(const Query& query,
                                                    std::span<const double> radii,
                                                    const Budget& budget,
                                                    const RunContext& context);

struct MethodInfo {
  std::string_view id, side, summary, theory;
  Guarantee guarantee;
};
[[nodiscard]] std::vector<MethodInfo> method_list();

}  // namespace lipscope

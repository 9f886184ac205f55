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
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/graph.h"
#include "lipscope/norm.h"

namespace lipscope {

struct Ball {
  Tensor center;  // all inputs of the graph, flattened one after another
  double radius = 0;
  Norm norm = Norm(2);
};

// Where the input may be: neither means everywhere, both mean their intersection. Boxes, too, hold
// all inputs flattened one after another.
struct Domain {
  std::optional<Box> box;
  std::optional<Ball> ball;
  [[nodiscard]] bool everywhere() const { return !box && !ball; }
};

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

// The norm is over all floating inputs together; the output is the first one, flattened.
struct Query {
  const Graph* graph = nullptr;
  NormPair norms{Norm(2), Norm(2)};
  Domain domain;
};

enum class Outcome { kFinished, kTarget, kTimeLimit, kInterrupted };
[[nodiscard]] std::string_view to_string(Outcome outcome);

// Two points of the domain whose difference quotient is the lower bound.
struct Witness {
  std::vector<double> x, y;
};

// The constants a composition is made of: gain of a node's output 0 with respect to one input.
struct GainClaim {
  std::string node;
  Index input = 0;
  NormPair norms{Norm(2), Norm(2)};
  double value = 0;
};

// Multipliers that prove the semidefinite bound [global-1] of the map from one value to another.
// Unless that is the whole network, gains beside it lead through the rest.
struct ChainProof {
  double rho = 0;
  std::vector<std::vector<double>> multipliers;  // by activation, by entry
  std::string from = {}, at = {};                // names; empty: the input, the output
  [[nodiscard]] bool whole() const { return from.empty() && at.empty(); }
};

// A unit of a network read as a chain of layers: its layer and its place there.
struct UnitId {
  std::size_t layer = 0, place = 0;
  friend bool operator==(const UnitId&, const UnitId&) = default;
};

// A proof by cases [pieces-5]: each split is by the value before a unit, each leaf has a bound that
// its multipliers prove, or no inner point.
struct CaseTree {
  // Non-negative weights, not all zero, with which the signed values before the units, less their
  // kinks, add up to nothing: then they cannot all be positive. `constant`: so does a positive
  // constant. A negative weight is that of the upper kink of a unit between two.
  struct Empty {
    std::vector<UnitId> units;
    std::vector<double> weights;
    bool constant = false;
  };
  struct Node {
    std::optional<UnitId> split;
    double at = 0;                                 // where the value before the unit is split
    std::array<std::size_t, 2> children = {0, 0};  // below, above
    Empty empty;
    std::vector<double> multipliers;  // of units without a sign, in their order
  };
  std::vector<Node> nodes;  // the first ones are roots: one per part of the Jacobian
  // By part: numbers per input for bounds of l1 norms by weighted l2 ones; empty where there are
  // none.
  std::vector<std::vector<double>> input_weights;
  // By round: multipliers of all units, by layer, that narrow their ranges on a bounded domain
  // before anything else [local-11].
  std::vector<std::vector<std::vector<double>>> narrowing = {};
  // One end of the range of a unit by lines beside the units of all layers before it, 0 to 255:
  // from one of two valid lines to the other [local-17]. In the order of layers, before any
  // narrowing.
  struct SharpEnd {
    UnitId unit;
    bool above = false;
    std::vector<std::uint8_t> mixes;
  };
  std::vector<SharpEnd> sharp_ends = {};
};

// What makes a bound more than a number.
struct Evidence {
  std::optional<Witness> witness = {};
  std::vector<GainClaim> gains = {};
  std::vector<ChainProof> chains = {};
  std::string computed = {};  // name of a bound that follows from the network alone
  std::shared_ptr<const CaseTree> cases = {};
  // Of either: the units whose slope is not known on the domain, counted through the network, when
  // the proof is about the network without the others [pieces-9].
  std::optional<std::vector<std::size_t>> open_units = {};
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
  std::vector<GainClaim> gains;    // of the best proved upper bound,
  std::vector<ChainProof> chains;  // its multipliers, or
  std::string computed;            // the name under which the checker computes it, or
  std::shared_ptr<const CaseTree> cases;
  std::optional<std::vector<std::size_t>> open_units;  // of either
  std::string no_bound;  // where and why there is no finite upper bound
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
  std::stop_token stop;
  std::uint64_t seed = 1;
  std::function<void(const ProgressEvent&)> progress;
  std::shared_ptr<GainMemory> memory = make_gain_memory();
  std::vector<Hint> hints = {};  // tried before any method
};

struct Budget {
  std::chrono::duration<double> time{60};
  double target_ratio = 1 + 1e-6;
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

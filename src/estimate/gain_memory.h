// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bounds/boxes.h"
#include "estimate/composition.h"

namespace lipscope {

// Gains that were computed before: by operator, constants, norms and the boxes of the inputs that
// vary. Graphs cut from one model share operators and constants, so that all margins of a
// classifier, or a series of radii, pay once for what they have in common. Thread-safe.
class GainMemory {
 public:
  // Those of one operator at some constants and boxes.
  class Place {
   public:
    struct Question {
      Index input;
      double p, q;
      bool quick;
      friend auto operator<=>(const Question&, const Question&) = default;
    };
    [[nodiscard]] std::optional<ProvedGain> find(const Question& question) const;
    // What was there before, or the gain.
    ProvedGain keep(const Question& question, ProvedGain gain);

   private:
    friend class GainMemory;
    // What the pointers of the key point to stays alive.
    std::shared_ptr<const Op> op_;
    std::vector<std::shared_ptr<const Constant>> constants_;
    mutable std::mutex mutex_;
    std::map<Question, ProvedGain> known_;
  };
  // `boxes`: a digest of the boxes of the inputs that vary.
  [[nodiscard]] std::shared_ptr<Place> place(const std::shared_ptr<const Op>& op,
                                             std::vector<std::shared_ptr<const Constant>> constants,
                                             std::string boxes);

 private:
  struct Key {
    const Op* op;
    std::vector<const Constant*> constants;
    std::string boxes;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Place>> places_;
};

// Holds a value for every input of the domain.
using BoxSource = std::function<Box(ValueId)>;

// The gains of a graph's nodes, from memory or from the operators. What they rest on is gathered
// once for all inputs and norms of a node, as long as the questions about it follow one another.
// Borrows the graph. One thread.
class RememberedGains {
 public:
  // `memory`: null where nothing is asked twice.
  RememberedGains(const Graph& graph, BoxSource boxes, std::shared_ptr<GainMemory> memory)
      : graph_(graph), boxes_(std::move(boxes)), memory_(std::move(memory)) {}

  // Of output 0 with respect to input k. Infinity where there is none. `quick`: see GainQuery.
  [[nodiscard]] ProvedGain gain(const Node& node, Index k, const NormPair& norms, bool quick);

 private:
  void visit(const Node& node);

  const Graph& graph_;
  BoxSource boxes_;
  std::shared_ptr<GainMemory> memory_;
  std::optional<ValueId> at_;  // the node that was asked about last, by what it makes
  std::vector<Box> in_;
  std::shared_ptr<GainMemory::Place> place_;  // null: moves in steps
};

}  // namespace lipscope

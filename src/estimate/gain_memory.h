// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <mutex>
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
  // The gain of a node's output 0 with respect to input k, from memory or from the operator.
  // Infinity where there is none. `quick`: see GainQuery.
  [[nodiscard]] ProvedGain gain(ValueBoxes& boxes, const Node& node, Index k, const NormPair& norms,
                                bool quick);

 private:
  struct Key {
    const Op* op;
    Index input;
    double p, q;
    std::vector<const Constant*> constants;
    std::string boxes;  // digest
    bool quick;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Entry {
    ProvedGain gain;
    // What the pointers of the key point to stays alive.
    std::shared_ptr<const Op> op;
    std::vector<std::shared_ptr<const Constant>> constants;
  };
  std::mutex mutex_;
  std::map<Key, Entry> known_;
};

}  // namespace lipscope
